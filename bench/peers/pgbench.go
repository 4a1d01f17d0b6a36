package peers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"oda/bench/measure"
)

// sampling is the share of transactions whose latency pgbench writes down. All
// of them would cost it, and so the database beside it, a noticeable time.
const sampling = 0.1

// sessionSettings are those that the archive gives its own connections, as far
// as they have to do with plans.
const sessionSettings = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off"

// Pgbench runs a script on a database: one thread that keeps so many
// connections busy, with prepared statements. The length is rounded up to whole
// seconds, which is all that pgbench knows; the sample has the true one. The
// latencies are of one transaction in ten.
func (p *Postgres) Pgbench(ctx context.Context, dsn string, script Script, connections int, length time.Duration) (measure.Sample, error) {
	sample, err := p.pgbench(ctx, dsn, script, connections, length)
	if err != nil {
		return measure.Sample{}, fmt.Errorf("pgbench: %w", err)
	}
	return sample, nil
}

func (p *Postgres) pgbench(ctx context.Context, dsn string, script Script, connections int, length time.Duration) (measure.Sample, error) {
	dir, err := os.MkdirTemp(p.lab.Dir, "pgbench-")
	if err != nil {
		return measure.Sample{}, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "script.sql")
	if err := os.WriteFile(file, []byte(script.text), 0o600); err != nil {
		return measure.Sample{}, err
	}
	seconds := max(1, int(math.Ceil(length.Seconds())))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+time.Minute)
	defer cancel()
	args := []string{
		"-n", "-M", "prepared", "-j", "1", "-c", strconv.Itoa(connections), "-T", strconv.Itoa(seconds), "-f", file,
		"-l", "--log-prefix", filepath.Join(dir, "log"), "--sampling-rate", fmt.Sprint(sampling),
		// Numbers that no run before used.
		"-D", fmt.Sprintf("base=%d", time.Now().UnixMicro()*maxConnections), "-D", "n=0",
	}
	for name, value := range script.variables {
		args = append(args, "-D", name+"="+value)
	}
	cmd := exec.CommandContext(ctx, p.cluster.Program("pgbench"), append(args, dsn)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PGOPTIONS="+sessionSettings, "LC_ALL=C")
	cmd.SysProcAttr = attributes()
	out, err := cmd.Output()
	if err != nil {
		return measure.Sample{}, explained(err)
	}
	sample, err := parseSummary(string(out))
	if err != nil {
		return measure.Sample{}, err
	}
	logs, err := filepath.Glob(filepath.Join(dir, "log.*"))
	if err != nil {
		return measure.Sample{}, err
	}
	err = latencies(&sample, logs)
	return sample, err
}

var (
	processed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	failed    = regexp.MustCompile(`number of failed transactions: (\d+)`)
	rate      = regexp.MustCompile(`tps = ([0-9.]+) \(without initial connection time\)`)
)

// parseSummary reads what pgbench says at its end.
func parseSummary(out string) (measure.Sample, error) {
	number := func(r *regexp.Regexp) float64 {
		match := r.FindStringSubmatch(out)
		if match == nil {
			return 0
		}
		n, _ := strconv.ParseFloat(match[1], 64) // the expression matches numbers only
		return n
	}
	sample := measure.Sample{Operations: int64(number(processed)), Failed: int64(number(failed))}
	perSecond := number(rate)
	if sample.Operations == 0 || perSecond == 0 {
		return measure.Sample{}, fmt.Errorf("it did nothing: %s", last([]byte(out)))
	}
	if sample.Failed > 0 {
		sample.FirstFailure = fmt.Sprintf("%d transactions failed", sample.Failed)
	}
	sample.Elapsed = time.Duration(float64(sample.Operations) / perSecond * float64(time.Second))
	return sample, nil
}

// latencies adds to a sample what pgbench wrote down of single transactions:
// the third word of each line is how long one took, in microseconds.
func latencies(sample *measure.Sample, logs []string) error {
	tally := measure.NewTally()
	for _, path := range logs {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if fields := strings.Fields(lines.Text()); len(fields) > 2 {
				if took, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
					tally.Done(time.Duration(took)*time.Microsecond, 0)
				}
			}
		}
		if err := errors.Join(lines.Err(), file.Close()); err != nil {
			return err
		}
	}
	seen := measure.Total(sample.Elapsed, tally)
	sample.P50, sample.P90, sample.P99, sample.P999, sample.Max = seen.P50, seen.P90, seen.P99, seen.P999, seen.Max
	return nil
}
