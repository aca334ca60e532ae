package shell

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Continuous measurements of a server: latency and figures of INFO.

// Clock measures time and sleeps. Tests have their own.
type Clock interface {
	Now() time.Time
	// Sleep waits, or returns the error of ctx if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

// systemClock is the clock of the system.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Shell) clock() Clock {
	if s.Clock == nil {
		return systemClock{}
	}
	return s.Clock
}

func (s *Shell) sleep(ctx context.Context, d time.Duration) error { return s.clock().Sleep(ctx, d) }

// The times of Latency.
const (
	betweenPings   = 10 * time.Millisecond
	latencyOnce    = time.Second      // duration of the measurement for one line
	latencyHistory = 15 * time.Second // the same for each line of a history
)

// latencies summarizes durations of commands.
type latencies struct {
	n             int
	sum, min, max time.Duration
}

func (l *latencies) add(d time.Duration) {
	if l.n == 0 || d < l.min {
		l.min = d
	}
	l.n, l.sum, l.max = l.n+1, l.sum+d, max(l.max, d)
}

// appendTo appends the durations in ms.
func (l *latencies) appendTo(dst []byte, f Format) []byte {
	text := "%d %d %.2f %d"
	switch f {
	case Plain:
		text = "min: %d, max: %d, avg: %.2f (%d samples)"
	case CSV:
		text = "%d,%d,%.2f,%d"
	case JSON:
		text = `{"min":%d,"max":%d,"avg":%.2f,"count":%d}`
	}
	return fmt.Appendf(dst, text, l.min.Milliseconds(), l.max.Milliseconds(), l.sum.Seconds()*1000/float64(max(l.n, 1)), l.n)
}

// Latency measures how long PING takes. In the format for people it shows the figures in place until ctx ends. In other
// formats it writes one line after the interval; 0 means a second. With history it starts a new line after each
// interval, 0 means 15 seconds, until ctx ends.
func (s *Shell) Latency(ctx context.Context, interval time.Duration, history bool) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if interval == 0 {
		if interval = latencyOnce; history {
			interval = latencyHistory
		}
	}
	live := s.Format == Plain
	var seen latencies
	for began := s.clock().Now(); ; {
		sent := s.clock().Now()
		r, err := s.ask(ctx, []string{"PING"})
		if err != nil {
			return s.end(ctx, live && seen.n > 0, err)
		}
		if r.isError() {
			return s.end(ctx, live && seen.n > 0, fmt.Errorf("PING: %s", r.text))
		}
		now := s.clock().Now()
		seen.add(now.Sub(sent))
		const clearLine = "\x1b[0G\x1b[2K"
		over := now.Sub(began) >= interval
		switch {
		case live:
			s.Out.Write(seen.appendTo([]byte(clearLine), s.Format))
			if over && history {
				fmt.Fprintf(s.Out, " -- %.2f seconds range\n", now.Sub(began).Seconds())
			}
		case over:
			s.Out.Write(append(seen.appendTo(nil, s.Format), '\n'))
			if !history {
				return s.Out.Flush()
			}
		}
		if err := s.Out.Flush(); err != nil {
			return err
		}
		if over && history {
			began, seen = now, latencies{}
		}
		if err := s.sleep(ctx, betweenPings); err != nil {
			return s.end(ctx, live && seen.n > 0, err)
		}
	}
}

// end returns nil if ctx has ended, otherwise err. It leaves a line that is written in place.
func (s *Shell) end(ctx context.Context, inPlace bool, err error) error {
	if inPlace {
		s.Out.WriteByte('\n')
		if flushErr := s.Out.Flush(); err == nil {
			err = flushErr
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// headEvery is after how many lines Stat repeats the header.
const headEvery = 20

const statHead = `------- data ------ --------------------- load -------------------- - child -
keys       mem      clients blocked requests            connections          
`

// Stat writes a line of figures of the server after each interval, until ctx ends; 0 means a second.
func (s *Shell) Stat(ctx context.Context, interval time.Duration) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if interval == 0 {
		interval = time.Second
	}
	before := int64(0)
	for n := 0; ; n++ {
		r, err := s.ask(ctx, []string{"INFO"})
		if err != nil {
			return s.end(ctx, false, err)
		}
		if r.isError() {
			return fmt.Errorf("INFO: %s", r.text)
		}
		if n%headEvery == 0 {
			s.Out.WriteString(statHead)
		}
		f := readFigures(string(r.text))
		if n == 0 {
			before = f.requests
		}
		fmt.Fprintf(s.Out, "%-11d%-9s%-8d%-8d%-20s%-12d%s\n", f.keys, human(f.memory), f.clients, f.blocked,
			fmt.Sprintf("%d (+%d)", f.requests, f.requests-before), f.connections, f.children)
		if err := s.Out.Flush(); err != nil {
			return err
		}
		before = f.requests
		if err := s.sleep(ctx, interval); err != nil {
			return s.end(ctx, false, err)
		}
	}
}

// figures has the figures of one line of Stat.
type figures struct {
	keys, memory, clients, blocked, requests, connections int64
	children                                              string // what the server does in the background
}

func readFigures(info string) (f figures) {
	numbers := map[string]*int64{"used_memory": &f.memory, "connected_clients": &f.clients, "blocked_clients": &f.blocked,
		"total_commands_processed": &f.requests, "total_connections_received": &f.connections}
	var children []string
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if n := numbers[name]; n != nil {
			*n, _ = strconv.ParseInt(value, 10, 64)
		}
		switch {
		case name == "rdb_bgsave_in_progress" && value != "0":
			children = append(children, "SAVE")
		case name == "aof_rewrite_in_progress" && value != "0":
			children = append(children, "AOF")
		case name == "loading" && value != "0":
			children = append(children, "LOAD")
		}
		if text, ok := strings.CutPrefix(value, "keys="); ok && strings.HasPrefix(name, "db") {
			text, _, _ = strings.Cut(text, ",")
			n, _ := strconv.ParseInt(text, 10, 64)
			f.keys += n
		}
	}
	f.children = strings.Join(children, " + ")
	return f
}

// human returns a number of bytes in a suitable unit.
func human(bytes int64) string {
	if bytes < 1<<10 {
		return strconv.FormatInt(bytes, 10) + "B"
	}
	n, unit := float64(bytes)/(1<<10), 0
	const units = "KMGT"
	for n >= 1<<10 && unit < len(units)-1 {
		n, unit = n/(1<<10), unit+1
	}
	return fmt.Sprintf("%.2f%c", n, units[unit])
}
