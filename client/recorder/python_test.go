package recorder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oda"
	"oda/client/recorder"
	"oda/internal/test/env"
	"oda/internal/test/must"
)

// python runs Python with the helper on its path.
func python(t *testing.T, dir, address string, arguments ...string) {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("this test needs python3: run \"make setup\"")
	}
	helper := must.Get(filepath.Abs("../../python/src"))(t)
	cmd := exec.Command(interpreter, arguments...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+helper, "PYTHONDONTWRITEBYTECODE=1",
		"ODA_SPOOL="+dir, "ODA_URL="+address, "ODA_EXIT_TIMEOUT=0.1", "EB_ID=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("python3 %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

func TestThePythonHelperShipsTheSpoolOfThisRecorder(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	dir := t.TempDir()
	rec, _ := opened(t, c, recorder.Options{Dir: dir, CreateTimeout: 50 * time.Millisecond, Document: []byte(`{"telescope":"ska_mid","f":0.35e9}`)})
	must.Do(t, rec.Say("Executing", ""))
	recordNumbers(t, rec, 1, 1500)
	must.Do(t, rec.End("Failed", "<é>"))
	leave(t, rec)
	network.point(env.Start(t).Addr())
	python(t, dir, network.address(), "-m", "oda_helper")
	wantNumbers(t, c, rec.BlockID(), 1500)
	wantStatuses(t, c, rec.BlockID(), "Executing", "Failed")
	wantSent(t, dir)
}

func TestThisRecorderShipsTheSpoolOfThePythonHelper(t *testing.T) {
	t.Parallel()
	network, c := unconnected(t)
	dir := t.TempDir()
	python(t, dir, network.address(), "-c", `
import oda_helper

@oda_helper.capture_request_response
def scan(n):
    return {"é": "<done>", "f": 0.1}

with oda_helper.execution_block(telescope="ska_mid"):
    for n in range(1500):
        scan(n=n)
`)
	network.point(env.Start(t).Addr())
	got := resumeAll(t, dir, &env.Journal{})
	if got.Err != nil || got.Stored != 1502 || got.Refused+got.Damaged+got.Left != 0 {
		t.Fatalf("the session was resumed with %+v", got)
	}
	if n := len(recordsOf(t, c, got.Block)); n != 1500 {
		t.Errorf("the block has %d records, want 1500", n)
	}
	wantStatuses(t, c, got.Block, "Executing", "Observed")
	if block, err := c.Get(t.Context(), oda.ExecutionBlock, got.Block); err != nil || !strings.Contains(string(block.Body), "ska_mid") {
		t.Errorf("the block differs from the one opened: %v", err)
	}
	wantSent(t, dir)
}
