package fault

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// children gives the processes that a process has started. It finds them on
// Linux only; elsewhere they end by themselves soon after their parent.
func children(pid int) []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	var found []int
	for _, path := range paths {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if _, parent := processState(child); parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// alive tells whether a process runs. One that only waits for somebody to note
// its end does not.
func alive(pid int) bool {
	state, _ := processState(pid)
	return state != "" && state != "Z"
}

// processState gives the state and the parent of a process; "" if it is gone.
func processState(pid int) (state string, parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// The name before the state is in parentheses and may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// logFile is the path of a log.
type logFile string

// size is its length so far.
func (l logFile) size() int64 {
	info, err := os.Stat(string(l))
	if err != nil {
		return 0
	}
	return info.Size()
}

// since gives what was added to it after a size, at most the last 16 KiB.
func (l logFile) since(begin int64) string {
	const most = 16 << 10
	file, err := os.Open(string(l))
	if err != nil {
		return ""
	}
	defer file.Close()
	begin = max(begin, l.size()-most)
	text, err := io.ReadAll(io.NewSectionReader(file, begin, most))
	if err != nil {
		return ""
	}
	return string(text)
}
