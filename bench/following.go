package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const followers = 100

// The arms with followers, and of one of these.
var (
	followed = fmt.Sprintf(", %d followers", followers)
	unpacked = followed + " without gzip"
	besides  = fmt.Sprintf(", %d streams of a bare server", followers)
	behind   = fmt.Sprintf(", one of %d followers", followers)
)

// runFollowing measures what followers of the changes take from those who record,
// and how far a follower is behind.
func runFollowing(ctx context.Context, s *stage) error {
	streams, err := s.startBare(ctx, bare)
	if err != nil {
		return err
	}
	var waiting []arm
	writing, err := s.arms(ctx, func(ctx context.Context, srv *server) ([]arm, error) {
		all, err := recordEach(ctx, srv, s.plan.busy)
		alone := loadArm(srv, "", all, 1)
		while := func(name string, followed *server, encoding string) arm {
			return arm{name: srv.arm(name), run: func(ctx context.Context, length time.Duration) (sample, error) {
				end, err := follow(followed, followers, encoding)
				if err != nil {
					return nil, err
				}
				defer end()
				return alone.run(ctx, length)
			}}
		}
		arms := []arm{alone, while(followed, srv, "gzip"), while(unpacked, srv, "identity")}
		if srv.name == onSQLite && !s.alone() {
			arms = append(arms, while(besides, streams, "identity"))
		}
		waiting = append(waiting, arm{name: srv.arm(behind), run: func(ctx context.Context, length time.Duration) (sample, error) {
			return delay(ctx, srv, all, length)
		}})
		return arms, err
	})
	if err != nil {
		return err
	}
	columns := []column{over(rate), over(rate, onSQLite), over(rate, onPostgres), over(p50), over(p99)}
	if err := s.measure(ctx, table{Title: "What followers take from those who record", Columns: columns}, writing); err != nil {
		return err
	}
	return s.measure(ctx, table{Title: "How far a follower is behind the acknowledgement", Columns: plain(p50, p99, p999)}, waiting)
}

// stream asks for a stream of changes from now on, in an encoding.
func stream(srv *server, encoding string) (net.Conn, *http.Response, error) {
	conn, err := net.DialTimeout("tcp", srv.addr, patience)
	if err != nil {
		return nil, nil, err
	}
	_, err = io.WriteString(conn, "GET "+api+"/changes?after=now HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\nAccept-Encoding: "+encoding+"\r\n\r\n")
	var response *http.Response
	if err == nil {
		response, err = http.ReadResponse(bufio.NewReader(conn), nil)
	}
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("a stream of changes is answered with %s", response.Status)
	}
	if err != nil {
		_ = conn.Close() // the first error is the one to tell
		return nil, nil, err
	}
	return conn, response, nil
}

// follow lets so many clients follow until the end. They take what they are sent
// and do nothing with it, not even unpack it: what they would do is not the server's
// load, but they share the machine with it.
func follow(srv *server, count int, encoding string) (end func(), err error) {
	var conns []net.Conn
	var reading sync.WaitGroup
	end = func() {
		for _, conn := range conns {
			_ = conn.Close() // nothing was written
		}
		reading.Wait()
	}
	for range count {
		conn, _, err := stream(srv, encoding)
		if err != nil {
			end()
			return nil, err
		}
		conns = append(conns, conn)
		reading.Go(func() {
			for room := make([]byte, 64<<10); ; {
				if _, err := conn.Read(room); err != nil {
					return
				}
			}
		})
	}
	return end, nil
}

// delay measures how long after the acknowledgement of a record a follower sees
// it, while all record and others follow. One connection's records are looked at.
func delay(ctx context.Context, srv *server, all []worker, length time.Duration) (sample, error) {
	end, err := follow(srv, followers-1, "gzip")
	if err != nil {
		return nil, err
	}
	defer end()
	conn, response, err := stream(srv, "gzip")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	body := io.Reader(response.Body)
	if response.Header.Get("Content-Encoding") == "gzip" { // earlier programs do not compress streams
		if body, err = gzip.NewReader(body); err != nil {
			return nil, err
		}
	}
	watched := sightings{acknowledged: map[int64]time.Time{}, seen: map[int64]time.Time{}}
	all = append([]worker(nil), all...)
	all[0].answered = func(body []byte) {
		watched.note(watched.acknowledged, numberAfter(body, `"sequence":`))
	}
	reading := make(chan error, 1)
	go func() { reading <- watched.read(body, []byte(identifier("eb-rec", 0))) }()
	if _, err := send(ctx, srv.addr, all, length, 0); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		delays, missing := watched.delays()
		if missing == 0 {
			return summary(delays, length)
		}
		select {
		case err := <-reading:
			return nil, fmt.Errorf("the stream of changes ended: %w", err)
		default:
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("a follower did not see %d records", missing)
		}
	}
}

// sightings is when the records of a block were acknowledged and seen, by their
// sequences.
type sightings struct {
	mu                 sync.Mutex
	acknowledged, seen map[int64]time.Time
}

func (s *sightings) note(in map[int64]time.Time, sequence int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in[sequence] = time.Now()
}

// read notes the records of a block as they come.
func (s *sightings) read(body io.Reader, block []byte) error {
	lines := bufio.NewReaderSize(body, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(line, []byte("data: ")) || !bytes.Contains(line, block) {
			continue
		}
		for sequence := numberAfter(line, `"first_sequence":`); sequence <= numberAfter(line, `"last_sequence":`); sequence++ {
			s.note(s.seen, sequence)
		}
	}
}

// delays returns how long after its acknowledgement each record was seen, and how many
// were not seen yet. What was seen before has no delay.
func (s *sightings) delays() (delays []time.Duration, missing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sequence, acknowledged := range s.acknowledged {
		seen, found := s.seen[sequence]
		if !found {
			missing++
		}
		delays = append(delays, max(0, seen.Sub(acknowledged)))
	}
	return delays, missing
}

// numberAfter reads the number that follows a text.
func numberAfter(line []byte, text string) int64 {
	_, rest, _ := bytes.Cut(line, []byte(text))
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	n, _ := strconv.ParseInt(string(rest[:max(end, 0)]), 10, 64)
	return n
}
