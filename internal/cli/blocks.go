package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"oda"
	"oda/client"
)

// blocks are the commands for ExecutionBlocks.
type blocks struct {
	entities
	Records calls     `cmd:"" reads:"" help:"Print the calls recorded into an ExecutionBlock; with -f, follow new ones."`
	Create  create    `cmd:"" help:"Create an empty ExecutionBlock."`
	Record  recording `cmd:"" help:"Record calls with their responses into an ExecutionBlock."`
}

// create creates an empty block.
type create struct {
	File string `arg:"" optional:"" help:"File with the members of the new block, a JSON object; - is stdin."`
	acting
}

// Run creates the block.
func (c *create) Run(ctx context.Context, archive *client.Client, to streams) error {
	var body []byte
	if c.File != "" {
		var err error
		if body, err = readFile(c.File, to.in); err != nil {
			return fmt.Errorf("%s: %w", called(c.File), err)
		}
	}
	d, err := archive.CreateBlock(ctx, body, "")
	if err != nil {
		return explain(archive, "a new ExecutionBlock", err)
	}
	sayRenamed(to, oda.ExecutionBlock, body, d.ID)
	return reportStored(to.out, d.ID)
}

// recording adds records to a block.
type recording struct {
	ID   string `arg:"" name:"id" complete:"id" help:"Identifier of the ExecutionBlock."`
	File string `arg:"" help:"File with a record, a JSON array of records, or one record per line; - is stdin."`
	Key  string `placeholder:"KEY" help:"Key of this recording. With the same key, a file can be sent again and is stored once."`
	acting
}

// Bounds of a batch. It waits only this long for more records, so that records of a
// running program are stored as they arrive.
const (
	batchRecords = 1000
	batchBytes   = 4 << 20
	batchWait    = 200 * time.Millisecond
)

var errInterrupted = errors.New("interrupted")

// Run sends the records in batches as it reads them. Each has a key, so that an
// interrupted recording can be sent again.
func (r *recording) Run(ctx context.Context, archive *client.Client, to streams) error {
	in, err := open(r.File, to.in)
	if err != nil {
		return fmt.Errorf("%s: %w", called(r.File), err)
	}
	defer in.Close()
	if r.Key == "" {
		r.Key = rand.Text()
	}
	s := sender{archive: archive, block: r.ID}
	if err = s.sendAll(ctx, in, r.Key); err != nil {
		f := failureOf(err)
		stored, uncertain := "records stored", client.Temporary(s.failed)
		if uncertain { // the last ones may be stored, too
			stored = "records known to be stored"
		}
		text := fmt.Sprintf("%s: %s [%s: %d", called(r.File), f.text, stored, s.sent)
		if s.sent > 0 || uncertain {
			text += "; to send the file again and store each record once, add --key=" + r.Key
		}
		return &failure{f.exit, text + "]"}
	}
	if s.sent == 0 {
		return fmt.Errorf("%s: it has no records", called(r.File))
	}
	return reportStored(to.out, fmt.Sprintf("%s sequence %d", r.ID, s.last))
}

// sender collects records and sends them in batches.
type sender struct {
	archive *client.Client
	block   string
	waiting []oda.NewRecord
	size    int
	sent    int
	last    int64 // highest sequence
	failed  error
}

// sendAll sends the records in a file, with keys that count them. If it is interrupted,
// it still sends what it has read; if it is interrupted again, the process ends.
func (s *sender) sendAll(ctx context.Context, in io.Reader, key string) error {
	interrupted, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(interrupted, stop)
	read, end := make(chan []byte), make(chan error, 1)
	left := make(chan struct{})
	defer close(left)
	go func() {
		end <- values(in, func(text []byte) error {
			select {
			case read <- text:
				return nil
			case <-left:
				return errInterrupted
			}
		})
	}()
	pause := time.NewTimer(batchWait)
	defer pause.Stop()
	for n := 1; ; {
		var err error
		select {
		case text := <-read:
			err = s.add(ctx, oda.NewRecord{Key: fmt.Sprintf("%s-%d", key, n), Text: text})
			if n++; len(s.waiting) == 1 {
				pause.Reset(batchWait) // also after a full batch was sent
			}
		case <-pause.C:
			err = s.send(ctx)
		case err = <-end:
			if err == nil {
				err = s.send(ctx)
			}
			return err
		case <-interrupted.Done():
			if err = s.send(ctx); err == nil {
				err = errInterrupted
			}
			return err
		}
		if err != nil {
			return err
		}
	}
}

func (s *sender) add(ctx context.Context, r oda.NewRecord) error {
	if len(s.waiting) == batchRecords || s.size > 0 && s.size+len(r.Text) > batchBytes {
		if err := s.send(ctx); err != nil {
			return err
		}
	}
	s.waiting = append(s.waiting, r)
	s.size += len(r.Text)
	return nil
}

// send sends what waits, if there is something.
func (s *sender) send(ctx context.Context) error {
	if len(s.waiting) == 0 {
		return nil
	}
	sequences, err := s.archive.RecordBatch(ctx, s.block, s.waiting)
	if err != nil {
		s.failed = err
		return explain(s.archive, s.block, s.numbered(err))
	}
	for _, sequence := range sequences {
		s.last = max(s.last, sequence)
	}
	s.sent += len(s.waiting)
	s.waiting, s.size = s.waiting[:0], 0
	return nil
}

// numbered returns a refusal of a batch with places in the file, not in the batch.
func (s *sender) numbered(err error) error {
	refused, ok := errors.AsType[*oda.Error](err)
	if !ok {
		return err
	}
	in := *refused
	in.Faults = slices.Clone(refused.Faults)
	for i := range in.Faults {
		f := &in.Faults[i]
		place, found := strings.CutPrefix(f.Pointer, "/records/")
		number, rest, _ := strings.Cut(place, "/record")
		if index, err := strconv.Atoi(number); found && err == nil {
			place = strings.TrimSpace(fmt.Sprintf("record %d %s", s.sent+index+1, rest))
			in.Detail, f.Pointer = strings.ReplaceAll(in.Detail, f.Pointer+": ", place+": "), place
		}
	}
	return &in
}
