package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram gives back the pages of the program's own file, its code and its constants, which count as resident
// because they were needed once. What is needed again comes back from the page cache at the next access. Parts that
// somebody has written to, as a debugger does for its breakpoints, are left alone: what was written would be lost.
func releaseProgram() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	var start, end uint64 // of the part that the lines are about, if it is one of the program's
	inside := false
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		line := lines.Text()
		if field, value, ok := strings.Cut(line, ":"); ok && !strings.Contains(field, " ") {
			if field == "Anonymous" && end != 0 && strings.TrimSpace(value) == "0 kB" {
				unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
			}
			continue
		}
		ours := strings.HasSuffix(line, " "+self)
		if inside && !ours {
			return // its parts are next to each other; there may be a great many others
		}
		inside = ours
		if start, end = 0, 0; ours {
			start, end = readOnly(line)
		}
	}
}

// readOnly returns the addresses of a part that cannot be written to, or zeros.
func readOnly(header string) (start, end uint64) {
	addresses, rest, _ := strings.Cut(header, " ")
	if !strings.HasPrefix(rest, "r-") {
		return 0, 0
	}
	from, to, _ := strings.Cut(addresses, "-")
	start, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return 0, 0
	}
	if end, err = strconv.ParseUint(to, 16, 64); err != nil {
		return 0, 0
	}
	return start, end
}
