package auditlog_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"oda/internal/auditlog"
	"oda/internal/test/env"
)

func TestFailedAttemptsAreSummedUpByAddressAndMinute(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	synctest.Test(t, func(t *testing.T) {
		log, err := auditlog.Open(path, false, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			log.Denied("192.0.2.1", 401)
		}
		for n := range 2000 { // more addresses than are counted one by one
			log.Denied(fmt.Sprintf("2001:db8::%x", n), 401)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if got := len(env.AuditLines(t, path, "")); got != 1025 {
			t.Fatalf("there are %d lines", got)
		}
		log.Denied("192.0.2.1", 401)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	})
	count := make(map[string]float64)
	sum := 0.0
	for _, line := range env.AuditLines(t, path, "") {
		if line["status"] != 401.0 {
			t.Fatalf("a line is %v", line)
		}
		count[line["from"].(string)] += line["count"].(float64)
		sum += line["count"].(float64)
	}
	if count["192.0.2.1"] != 301 || count["other addresses"] != 2000-1023 || sum != 2301 {
		t.Errorf("the sums are %v, %v and %v", count["192.0.2.1"], count["other addresses"], sum)
	}
}

// A caller who is not allowed to write has one line for each operation and minute,
// however often they try, and it tells the first attempt.
func TestRefusalsAreSummedUpByCallerAndOperation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	synctest.Test(t, func(t *testing.T) {
		log, err := auditlog.Open(path, false, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		refuse := func(caller, operation, entity string) {
			log.Refused(auditlog.Entry{
				Time: time.Now(), Caller: caller, Means: "token", From: "192.0.2.1", Operation: operation, Entity: entity, Status: 403, RequestID: "id-" + entity,
			})
		}
		for n := range 10_000 {
			refuse("reader", "storeSBD", fmt.Sprint(n))
			refuse("reader", "storeEB", fmt.Sprint(n))
			refuse("guest", "storeSBD", fmt.Sprint(n))
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		for n := range 5000 { // more than are counted one by one
			refuse(fmt.Sprint("caller ", n), "storeSBD", "x")
		}
		for n := range 5000 { // strangers push nobody out
			log.Denied(fmt.Sprintf("2001:db8::%x", n), 401)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	})
	lines := env.AuditLines(t, path, "")
	if len(lines) != 3+1025+1025 {
		t.Fatalf("there are %d lines", len(lines))
	}
	for i, want := range []string{"guest storeSBD", "reader storeEB", "reader storeSBD"} {
		line := lines[i]
		if got := fmt.Sprint(line["caller"], " ", line["operation"]); got != want || line["count"] != 10_000.0 || line["since"] == nil ||
			line["status"] != 403.0 || line["entity"] != "0" || line["request_id"] != "id-0" {
			t.Errorf("line %d is %v, want that of %s", i, line, want)
		}
	}
	sums := make(map[any]float64)
	for _, line := range lines[3:] {
		sums[line["status"]] += line["count"].(float64)
		if line["caller"] == "other callers" && line["count"] != 5000.0-1024 {
			t.Errorf("those that are counted together: %v", line)
		}
	}
	if sums[401.0] != 5000 || sums[403.0] != 5000 {
		t.Errorf("the sums are %v", sums)
	}
}

// On a full disk what is left of the space belongs to writes. Refusals wait, and are
// not forgotten.
func TestRefusalsTakeNoRoomFromWrites(t *testing.T) {
	t.Parallel()
	disk := env.SmallDisk(t, 1<<20)
	path := filepath.Join(disk, "audit.log")
	synctest.Test(t, func(t *testing.T) {
		log, err := auditlog.Open(path, false, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Begin(3); err != nil {
			t.Fatal(err)
		}
		empty := env.FillDisk(t, disk)
		for n := range 1000 {
			log.Denied(fmt.Sprint("192.0.2.", n), 401)
			log.Refused(auditlog.Entry{Caller: fmt.Sprint("caller ", n), Operation: "storeSBD", Status: 403})
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if lines := env.AuditLines(t, path, ""); len(lines) != 0 {
			t.Errorf("refusals took the room of %d lines", len(lines))
		}
		for range 3 {
			log.Write(auditlog.Entry{Entity: "a", Operation: "storeSBD", Status: 200})
		}
		log.End(3)
		if err := write(log, "b"); err != nil {
			t.Errorf("beside refusals a write is refused: %v", err)
		}
		empty()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	writes, refused := 0, 0.0
	for _, line := range env.AuditLines(t, path, "") {
		if n, ok := line["count"].(float64); ok {
			refused += n
		} else {
			writes++
		}
	}
	if writes != 4 || refused != 2000 {
		t.Errorf("with room again, the log tells of %d writes and %v refusals", writes, refused)
	}
}
