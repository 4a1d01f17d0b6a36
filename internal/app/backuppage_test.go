package app_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oda/internal/test/env"
	"oda/internal/test/must"
)

// machine is a folder that stands for the machine of the page about backups, and a
// service manager that runs the archive there.
type machine struct {
	root    string
	words   *strings.Replacer // from paths and addresses of the page to those here
	env     []string
	account *syscall.Credential
}

// systemctl starts and stops the archive as the service manager does: it returns when
// that is done.
const systemctl = `#!/bin/bash
cd ROOT
case $1 in
stop) kill $(cat pid) && while [ -e var/lib/oda/archive.db.lock ]; do sleep 0.05; done ;;
start) oda serve --listen ADDRESS --db sqlite:ROOT/var/lib/oda/archive.db </dev/null >log 2>&1 &
	echo $! >pid
	until (exec 3<>/dev/tcp/${ODA_URL/:/\/}) 2>/dev/null; do kill -0 $(cat pid) || exit 1; sleep 0.05; done ;;
esac
`

// newMachine makes a machine. What takes another user or root on a real one is done
// without them.
func newMachine(t *testing.T, words ...string) *machine {
	t.Helper()
	root := must.Get(os.MkdirTemp("", "oda-machine-"))(t)
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	m := &machine{root: root}
	address := freeAddress(t)
	for name, script := range map[string]string{
		"systemctl": strings.NewReplacer("ROOT", root, "ADDRESS", address).Replace(systemctl),
		"sudo":      "#!/bin/sh\nshift 2\nexec \"$@\"\n",
	} {
		writeProgram(t, filepath.Join(root, "bin", name), []byte(script))
	}
	program := must.Get(os.ReadFile(env.Program(t)))(t)
	writeProgram(t, filepath.Join(root, "bin", "oda"), program)
	for _, folder := range []string{"backup", "etc/oda", "var/lib/oda"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, folder), 0o750))
	}
	m.env = append(command(t).Env, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "ODA_URL="+address)
	m.words = strings.NewReplacer(append([]string{
		"/var/lib/oda", root + "/var/lib/oda", "/backup", root + "/backup", "/etc/oda", root + "/etc/oda", " -o oda -g oda", "",
		"bin/oda ", "oda ", "oda-data/", root + "/var/lib/oda/", "2026-11-16", time.Now().Format(time.DateOnly),
	}, words...)...)
	return m
}

func writeProgram(t *testing.T, path string, content []byte) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, content, 0o755))
}

// does runs commands, and returns what they print.
func (m *machine) does(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-c", m.words.Replace(script))
	cmd.Dir, cmd.Env = m.root, m.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: m.account}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v of\n%s\nwhich prints\n%s", err, m.words.Replace(script), out)
	}
	return string(out)
}

// The commands of docs/backup.md, as they stand there, on a machine that has nothing
// but the programs.
func TestTheCommandsOfThePageAboutBackupsWork(t *testing.T) {
	t.Parallel()
	var embedded, database []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page(t, "docs/backup.md"), -1) {
		if strings.Contains(block[1], "pg_") {
			database = append(database, block[1])
		} else {
			embedded = append(embedded, block[1])
		}
	}
	if len(embedded) != 6 || len(database) != 3 {
		t.Fatalf("the page has %d and %d blocks of commands, and this test knows 6 and 3", len(embedded), len(database))
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.does(t, "systemctl start oda")
		t.Cleanup(func() { m.does(t, "systemctl stop oda") })
		m.does(t, `echo '{"sbd_id":"sbd-1","note":"kept"}' >sbd.json && oda sbds put sbd.json && touch etc/oda/oda.yaml`)
		for i, commands := range embedded {
			if strings.Contains(commands, "sqlite3 ") {
				if _, err := exec.LookPath("sqlite3"); err != nil {
					continue // this machine lacks it
				}
			}
			if i >= 4 { // these are for a server that is stopped, at least in part
				m.does(t, "systemctl stop oda")
				commands = strings.TrimPrefix(commands, "oda doctor\n")
			}
			out := m.does(t, commands)
			if i >= 4 {
				if !strings.Contains(out, "everything fits") && !strings.Contains(out, "nothing is wrong") {
					t.Errorf("%s prints %s", commands, out)
				}
				m.does(t, "systemctl start oda")
			}
			if text := m.does(t, "oda sbds get sbd-1"); !strings.Contains(text, "kept") {
				t.Errorf("after\n%s\nthe document is %s", commands, text)
			}
		}
		m.does(t, "oda doctor")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		cluster := env.NewCluster(t, env.ClusterOptions{})
		dsn := must.Get(url.Parse(cluster.DSN("postgres")))(t)
		_, tried, err := net.SplitHostPort(freeAddress(t))
		must.Do(t, err)
		m := newMachine(t, "postgres://oda@db1/", fmt.Sprintf("postgres://oda@%s/", dsn.Host), "5499", tried)
		programs := filepath.Dir(cluster.Program("pg_dump"))
		m.env = append(m.env, "PATH="+filepath.Join(m.root, "bin")+":"+programs+":"+os.Getenv("PATH"),
			"PGHOST="+dsn.Hostname(), "PGPORT="+dsn.Port(), "PGUSER="+dsn.User.Username(), "PGDATABASE=postgres")
		m.become(t)
		m.does(t, "createuser oda && createdb --owner oda oda")
		p := env.Oda(t, "serve", "--db", fmt.Sprintf("postgres://oda@%s/oda", dsn.Host))
		answered(t, "PUT", p.URL+"/sbds/sbd-1", `{"note":"kept"}`)
		for _, commands := range database {
			out := m.does(t, commands)
			if strings.Contains(commands, "oda verify") && !strings.Contains(out, "1 entity, 1 version, 0 records and 0 statuses read") {
				t.Errorf("%s prints %s", commands, out)
			}
		}
	})
}

// become lets the commands run as a user that PostgreSQL accepts, which root is not.
func (m *machine) become(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	must.Do(t, err)
	uid, uidErr := strconv.Atoi(account.Uid)
	gid, gidErr := strconv.Atoi(account.Gid)
	if uidErr != nil || gidErr != nil {
		t.Fatal(uidErr, gidErr)
	}
	for _, path := range []string{m.root, filepath.Join(m.root, "backup")} {
		must.Do(t, os.Chown(path, uid, gid))
	}
	m.account = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
