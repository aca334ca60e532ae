package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram gives back the pages of the program file, code and constants, which count as resident after their
// first use. A page that is needed again comes back from the page cache. It does not touch writable mappings, or
// mappings that were written to, for example by a debugger for its breakpoints: the changes would be lost.
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
	var start, end uint64 // of the current mapping, if it is one of the program
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
			return // the program's mappings are adjacent; skip the rest, which may be long
		}
		inside = ours
		if start, end = 0, 0; ours {
			start, end = readOnly(line)
		}
	}
}

// readOnly returns the addresses of a mapping that is not writable, or zeros.
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
