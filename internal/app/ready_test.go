package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"oda/internal/app"
	"oda/internal/test/env"
)

func TestAnArchiveOnAFullDiskIsNotReady(t *testing.T) {
	t.Parallel()
	dir := env.SmallDisk(t, 8<<20)
	a := env.Start(t, func(c *app.Config) { c.Database = "sqlite:" + filepath.Join(dir, "archive.db") })
	ready := a.Origin() + "/readyz"
	answered(t, "GET", ready, "")
	empty := env.FillDisk(t, dir)
	body := `{"text":"` + strings.Repeat("x", 64<<10) + `"}`
	for i := 0; ; i++ {
		reply := a.Do("POST", "/prjs", body)
		if reply.Status == 503 && reply.Header.Get("Retry-After") != "" {
			break
		}
		if reply.Status != 200 || i == 1000 {
			t.Fatalf("store %d on a full disk is answered %d: %s", i, reply.Status, reply.Text())
		}
	}
	if status, text := env.Send(t, "GET", ready, ""); status != 503 || !strings.Contains(text, "the disk of the archive is full") {
		t.Errorf("readyz answers %d %s", status, text)
	}
	answered(t, "GET", a.Origin()+"/livez", "")
	a.Must("GET", "/prjs?user=DefaultUser", "")
	empty()
	env.Await(t, "the archive is ready, since there is space again", func() bool {
		status, _ := env.Send(t, "GET", ready, "")
		return status == 200
	})
	a.Must("POST", "/prjs", body)
}
