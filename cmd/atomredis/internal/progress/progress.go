// Package progress shows the progress of a long task: in place on a terminal, in lines elsewhere.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	redraw = 200 * time.Millisecond // between two updates of a terminal's line
	lines  = 5 * time.Second        // between two lines of another output
	width  = 79                     // greatest width of a terminal's line
	cells  = 10                     // width of the bar
)

// Bytes is the unit of steps that are measured in bytes.
const Bytes = "B"

// Bar shows the steps of one task. Its methods may be called from any goroutine.
type Bar struct {
	out      io.Writer
	now      func() time.Time
	terminal bool

	mu    sync.Mutex           // protects what follows, and out
	began map[string]time.Time // start of each step
	next  time.Time            // when the next line is due
	shown bool                 // the terminal shows a line that must be erased
}

// New returns a bar that is shown on out, in place if out is a terminal. Short steps are not shown.
func New(out io.Writer) *Bar {
	return newBar(out, Terminal(out) && os.Getenv("TERM") != "dumb", time.Now)
}

func newBar(out io.Writer, terminal bool, now func() time.Time) *Bar {
	b := &Bar{out: out, now: now, terminal: terminal, began: map[string]time.Time{}}
	b.next = now().Add(b.interval())
	return b
}

// Terminal reports whether a stream is a terminal.
func Terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

func (b *Bar) interval() time.Duration {
	if b.terminal {
		return redraw
	}
	return lines
}

// Show sets the progress of a step: done of total, in a unit; a total of 0 is unknown. A step ends when done reaches
// total, or with Done.
func (b *Bar) Show(step, unit string, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	began, ok := b.began[step]
	if !ok {
		began = now
		b.began[step] = now
	}
	if total > 0 && done >= total {
		delete(b.began, step)
		b.erase()
		return
	}
	if now.Before(b.next) {
		return
	}
	b.next = now.Add(b.interval())
	line := describe(step, unit, done, total, now.Sub(began), b.terminal)
	if !b.terminal {
		fmt.Fprintln(b.out, line)
		return
	}
	fmt.Fprintf(b.out, "\r%s\x1b[K", line[:min(len(line), width)])
	b.shown = true
}

// Done ends all steps.
func (b *Bar) Done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.began)
	b.erase()
}

// erase removes the line from the terminal. mu is locked.
func (b *Bar) erase() {
	if b.shown {
		io.WriteString(b.out, "\r\x1b[K")
		b.shown = false
	}
}

// Around returns a writer to w, which may be the same terminal; its output does not mix with the bar.
func (b *Bar) Around(w io.Writer) io.Writer { return around{b, w} }

type around struct {
	b *Bar
	w io.Writer
}

func (a around) Write(p []byte) (int, error) {
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	a.b.erase()
	return a.w.Write(p)
}

// describe returns a line without the line break.
func describe(step, unit string, done, total int64, took time.Duration, bar bool) string {
	of, behind := "", " "+unit
	if unit == Bytes {
		of, behind = Bytes, ""
	}
	rate := 0.0 // per second; 0 is unknown
	if took > 0 {
		rate = float64(done) / took.Seconds()
	}
	var line strings.Builder
	line.WriteString(step)
	if total > 0 {
		part := float64(done) / float64(total)
		if bar {
			full := int(part * cells)
			fmt.Fprintf(&line, " [%s%s]", strings.Repeat("#", full), strings.Repeat("-", cells-full))
		}
		fmt.Fprintf(&line, " %d%%", int(100*part))
		if rate > 0 {
			left := time.Duration(float64(total-done) / rate * float64(time.Second))
			fmt.Fprintf(&line, ", %s left", left.Round(time.Second))
		}
		fmt.Fprintf(&line, ", %s of %s%s", amount(done, of), amount(total, of), behind)
	} else {
		fmt.Fprintf(&line, ", %s%s", amount(done, of), behind)
	}
	if rate > 0 {
		fmt.Fprintf(&line, ", %s/s", amount(int64(rate), of))
	}
	return line.String()
}

// amount returns a number with one decimal: 1.5k, or 1.5 kB for bytes.
func amount(n int64, of string) string {
	f, prefix := float64(n), ""
	for _, p := range []string{"k", "M", "G", "T"} {
		if f < 1000 {
			break
		}
		f, prefix = f/1000, p
	}
	number := fmt.Sprintf("%.1f", f)
	if prefix == "" {
		number = fmt.Sprint(n)
	}
	if of == "" {
		return number + prefix
	}
	return number + " " + prefix + of
}
