package follow

import (
	"path/filepath"
	"testing"

	"oda/internal/test/env"
)

// The server is killed with SIGKILL, or stopped as an operator does it, and
// started again at another address.
func TestFollowersOfTheEmbeddedEngineMissNothing(t *testing.T) {
	t.Parallel()
	db := "--db=sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	server := env.Oda(t, "serve", db)
	p := start(t, hosts(server), hosts(server))
	restart := func() {
		server = env.Oda(t, "serve", db)
		p.move(hosts(server), hosts(server))
	}
	rounds(t, p, func() {
		server.Kill()
		restart()
	}, func() {
		if code := server.Stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		restart()
	}, func() {
		server.Kill()
		restart()
	})
	nothingMissed(t, p, server.Host(), "unclear")
}
