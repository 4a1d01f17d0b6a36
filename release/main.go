// Command release builds what is shipped into one folder, from one commit: the
// programs, the Debian packages, the image, the chart, the wheel, the bill of
// materials and the checksums. The same commit gives the same bytes.
//
// Run it with "make release".
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// release is what one run builds.
type release struct {
	root     string // of the checkout
	out      string // folder of what is shipped
	work     string // folder of what is not
	ko       string // the program ko
	versions versions
	time     time.Time // of the commit: every file gets it
	log      *os.File
}

// platform is an operating system and a processor.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are those that there is a program for. Packages and image are for the
// Linux ones.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

var linux = platforms[:2]

func main() {
	out := flag.String("out", "dist", "folder to build into; it is emptied first")
	ko := flag.String("ko", "ko", "the program ko")
	flag.Parse()
	if err := run(*out, *ko); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// run builds everything from the checkout that is the working directory.
func run(out, ko string) (err error) {
	r := &release{log: os.Stderr}
	if r.root, err = os.Getwd(); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return err
	}
	if r.ko, err = filepath.Abs(ko); err != nil {
		return err
	}
	if r.versions, err = readVersions(r.root); err != nil {
		return err
	}
	if r.time, err = commitTime(r.root); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "oda-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	contents, err := newBill(r)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		what  string
		build func(*bill) error
	}{
		{"programs", r.programs}, {"Debian packages", r.packages}, {"image", r.image}, {"chart", r.chart}, {"wheel", r.wheel},
	} {
		fmt.Fprintf(r.log, "release: %s %s\n", part.what, r.versions.semver)
		if err := part.build(contents); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	if err := contents.write(); err != nil {
		return fmt.Errorf("bill of materials: %w", err)
	}
	return writeSums(r.out)
}

// commitTime returns SOURCE_DATE_EPOCH, or the time of the commit.
func commitTime(root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.Command("git", "-C", root, "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("the time of the commit is not known; set SOURCE_DATE_EPOCH: %w", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// do runs a command in the checkout, with further environment variables.
func (r *release) do(env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.time.Unix(), 10), "VERSION_OF="+r.versions.described)
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return nil
}
