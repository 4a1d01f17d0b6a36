package peers

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"oda/bench/load"
)

// Python packages that are installed for Kinto.
var kintoPackages = []string{"kinto[postgresql]==26.5.0", "gunicorn"}

// KintoSettings is how Kinto is run, for the report.
const KintoSettings = "on the same PostgreSQL, behind gunicorn with 2 processes of 16 threads that keep connections alive; cache in memory, everybody may read and write"

// Kinto renders requests for Kinto, where a document is a record of a
// collection. The first PUT of an identifier answers 201, all else 200.
type Kinto struct{}

// Create stores a new document.
func (Kinto) Create(id string, document []byte) []byte { return kintoPut("sbds", id, document) }

// Get reads a document.
func (Kinto) Get(id string) []byte { return load.Request(nil, "GET", kintoPath("sbds", id), nil, nil) }

// Update stores a document again. The one before is lost: Kinto keeps no
// versions without its history plugin.
func (Kinto) Update(id string, document []byte) []byte { return kintoPut("sbds", id, document) }

// Record adds a record to a block: a record of Kinto's that names it, under
// an identifier that Kinto makes. It answers 201.
func (Kinto) Record(block string, record []byte) []byte {
	body := fmt.Appendf(nil, `{"data":{"eb_id":%q,"document":%s}}`, block, record)
	return load.Request(nil, "POST", kintoPath("records", ""), jsonHeader(), body)
}

func kintoPut(collection, id string, document []byte) []byte {
	return load.Request(nil, "PUT", kintoPath(collection, id), jsonHeader(), fmt.Appendf(nil, `{"data":%s}`, document))
}

func kintoPath(collection, id string) string {
	return strings.TrimSuffix("/v1/buckets/oda/collections/"+collection+"/records/"+id, "/")
}

//go:embed kinto.ini
var kintoIni string

//go:embed kinto_wsgi.py
var kintoWSGI []byte

// Kinto starts a Kinto on a database, with empty collections. It is installed
// from PyPI the first time; errors.Is(err, ErrUnavailable) if that fails.
func (l *Lab) Kinto(ctx context.Context, dsn string) (*Server, error) {
	env, err := l.installKinto(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: install Kinto: %w", ErrUnavailable, err)
	}
	dir := filepath.Join(l.Dir, l.numbered("Kinto-config"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("configure Kinto: %w", err)
	}
	ini := filepath.Join(dir, "kinto.ini")
	// SQLAlchemy knows the scheme by its long name only, and a percent sign is
	// special in this file.
	database := strings.ReplaceAll(strings.Replace(dsn, "postgres://", "postgresql://", 1), "%", "%%")
	for path, text := range map[string][]byte{
		ini:                                 []byte(strings.ReplaceAll(kintoIni, "{database}", database)),
		filepath.Join(dir, "kinto_wsgi.py"): kintoWSGI,
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, fmt.Errorf("configure Kinto: %w", err)
		}
	}
	if err := l.run(ctx, dir, nil, filepath.Join(env, "bin", "kinto"), "migrate", "--ini", ini); err != nil {
		return nil, fmt.Errorf("make the tables of Kinto: %w", err)
	}
	server, err := l.start(ctx, command{
		name: "Kinto", path: filepath.Join(env, "bin", "gunicorn"), ready: "/v1/__heartbeat__",
		args: []string{
			"--bind", "{addr}", "--chdir", dir, "--worker-class", "gthread", "--workers", "2", "--threads", "16",
			"--keep-alive", "60", "--log-level", "warning", "kinto_wsgi:application",
		},
		env: []string{"KINTO_INI=" + ini},
	})
	if err != nil {
		return nil, err
	}
	return server, server.makeCollections(ctx)
}

// makeCollections makes the bucket and the collections of a Kinto.
func (s *Server) makeCollections(ctx context.Context) error {
	for _, path := range []string{"/v1/buckets/oda", "/v1/buckets/oda/collections/sbds", "/v1/buckets/oda/collections/records"} {
		answer, err := load.Once(ctx, s.Addr, load.Request(nil, "PUT", path, jsonHeader(), []byte(`{"permissions":{"write":["system.Everyone"]}}`)))
		if err != nil {
			return fmt.Errorf("make %s in Kinto: %w", path, err)
		}
		if answer.Status/100 != 2 {
			return fmt.Errorf("make %s in Kinto: it answers %d: %s", path, answer.Status, answer.Body)
		}
	}
	return nil
}

// installKinto makes a Python environment with Kinto, or takes the one that a
// run before left in the folder.
func (l *Lab) installKinto(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinto != "" {
		return l.kinto, nil
	}
	env := filepath.Join(l.Dir, "kinto")
	python := filepath.Join(env, "bin", "python")
	if version, err := kintoVersion(ctx, python); err == nil {
		l.kinto, l.versions["Kinto"] = env, version
		return env, nil
	}
	l.say("installing Kinto")
	if err := l.run(ctx, l.Dir, nil, "python3", "-m", "venv", "--clear", env); err != nil {
		return "", err
	}
	if err := l.run(ctx, l.Dir, nil, python, append([]string{"-m", "pip", "install", "--quiet"}, kintoPackages...)...); err != nil {
		return "", err
	}
	version, err := kintoVersion(ctx, python)
	if err != nil {
		return "", err
	}
	l.kinto, l.versions["Kinto"] = env, version
	return env, nil
}

// kintoVersion asks an environment what it has.
func kintoVersion(ctx context.Context, python string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-c",
		"from importlib.metadata import version as v; from platform import python_version as p; "+
			"print(v('kinto') + ', gunicorn ' + v('gunicorn') + ', Python ' + p())").Output()
	return strings.TrimSpace(string(out)), explained(err)
}
