// Drill is a fire drill for the archive on a replicated PostgreSQL. It starts
// the example in this folder on one machine: etcd, three nodes with Patroni and
// PostgreSQL, and two oda servers. While writers use both
// servers, it kills or isolates the leader three times, repairs the cluster
// each time, and reads everything back at the end.
//
// Everything is in one directory and listens only on 127.0.0.1. All connections
// between the parts lead through proxies that can be cut. However the drill
// ends, its processes and its directory are removed. It needs Linux, and
// Debian's packages patroni, etcd-server and postgresql.
//
// It exits with 0 if no acknowledged write is lost or duplicated, nothing that
// was read has vanished, the cluster recovered each time, and both servers
// wrote again within a second of the database itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"oda/internal/test/fault"
	"oda/internal/test/load"
)

// attemptTime is how long a writer waits for an answer. A script at the telescope
// does not wait long. This is less than an isolated leader takes to step down, so
// requests are given up, and repeated, while it still answers.
const attemptTime = 3 * time.Second

// options are the flags.
type options struct {
	oda    string
	config string
	events []string
	most   time.Duration
	logs   string
}

func main() {
	o := options{}
	events := flag.String("events", "kill,cut,isolate", "what happens to the leader, in this order: "+strings.Join(kinds(), ", "))
	flag.StringVar(&o.oda, "oda", "bin/oda", "the oda to run")
	flag.StringVar(&o.config, "config", "deploy/patroni/patroni.yml", "the configuration of Patroni")
	flag.StringVar(&o.logs, "logs", "", "keep the logs of all processes in this directory")
	flag.DurationVar(&o.most, "time", 10*time.Minute, "the drill takes no longer than this")
	flag.Parse()
	o.events = strings.Split(*events, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, o.most, fmt.Errorf("the drill took longer than %v", o.most))
	defer cancel()
	if err := drill(ctx, o); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		fmt.Fprintln(os.Stderr, "drill: failed:", err)
		os.Exit(1)
	}
}

// progress reports progress to the user.
type progress struct {
	began time.Time
	out   io.Writer
}

func (p progress) say(format string, args ...any) {
	fmt.Fprintf(p.out, "%6.1fs  %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}

// drill runs the whole drill.
func drill(ctx context.Context, o options) (err error) {
	p := progress{time.Now(), os.Stdout}
	for _, e := range o.events {
		if !slices.Contains(kinds(), e) {
			return fmt.Errorf("unknown event %q; the events are %s", e, strings.Join(kinds(), ", "))
		}
	}
	bin, err := findPrograms()
	if err != nil {
		return err
	}
	y, err := fault.NewYard("", "oda-drill-")
	if err != nil {
		return fmt.Errorf("make a directory for the drill: %w", err)
	}
	defer func() {
		p.say("ending everything and removing %s", y.Dir)
		if o.logs != "" {
			err = errors.Join(err, keepLogs(y, o.logs))
		}
		err = errors.Join(err, y.Close())
	}()

	p.say("starting etcd and %d nodes of Patroni and PostgreSQL in %s", nodeCount, y.Dir)
	c, err := startCluster(ctx, y, o.config, bin)
	if err != nil {
		return err
	}
	leader := c.leader(ctx, nil)
	if leader == nil {
		return errors.New("the leader was gone before the drill began")
	}
	p.say("the cluster is whole, %s leads", leader.name)
	if err := c.makeDatabase(ctx, leader); err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	servers, err := startServers(ctx, y, o.oda, c.archiveDSN())
	if err != nil {
		return err
	}
	p.say("%d oda servers are ready", serverCount)

	w := &watch{servers: servers}
	l, err := load.Start(load.Options{Attempt: attemptTime, Through: func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	}}, servers[:]...)
	if err != nil {
		return err
	}
	defer l.Stop()
	p.say("writers are at work")
	var events []event
	for _, kind := range o.events {
		e, err := c.strike(ctx, p, l, w, kind)
		if err != nil {
			return fmt.Errorf("after %s: %w", kind, err)
		}
		events = append(events, e)
	}
	if !pause(ctx, calm) {
		return ctx.Err()
	}
	p.say("stopping the load")
	l.Pause()
	p.say("reading everything back")
	report(p.out, events, l)
	for _, host := range servers {
		stored, err := l.Read(ctx, host)
		if err != nil {
			return err
		}
		if err := errors.Join(l.Check(stored), l.Enough(load.Everything...)); err != nil {
			return fmt.Errorf("the stored data differs from what was acknowledged: %w", err)
		}
	}
	for _, e := range events {
		if e.delay() > mostDelay {
			return fmt.Errorf("after %s, oda wrote %.1f s later than the database did; at most %v is allowed", e.kind, e.delay().Seconds(), mostDelay)
		}
	}
	return nil
}

// findPrograms checks that everything is installed, and returns the directory
// of PostgreSQL's programs.
func findPrograms() (bin string, err error) {
	for _, name := range []string{"etcd", "patroni"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("%w; on Debian: apt-get install --no-install-recommends patroni etcd-server python3-etcd postgresql", err)
		}
	}
	return fault.FindPostgres()
}
