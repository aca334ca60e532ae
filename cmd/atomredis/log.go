package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/config"
)

// The destinations of the log. No caller waits for the log: a line goes into a queue, and one goroutine per destination
// writes it. Lines that cannot be written are dropped and counted, and the count precedes the next written line.

const (
	// logQueue is the size of the queue in bytes.
	logQueue = 1 << 20
	// logFlushTimeout is how long the end of the program waits for the last lines.
	logFlushTimeout = time.Second
)

// logLine is one line, with the newline at its end.
type logLine struct {
	level slog.Level
	text  []byte
}

// logOutput is a destination of lines. One goroutine uses it.
type logOutput interface {
	// write writes lines. Without lines it only checks whether its file or connection must be opened again.
	write(lines []logLine) error
	close()
}

// logSink is one destination of the log.
type logSink struct {
	out logOutput
	// format formats the records of the sink itself.
	format slog.Handler
	wake   chan struct{}
	done   chan struct{}

	mu      sync.Mutex // protects what follows; nothing waits while it is held
	buf     bytes.Buffer
	queue   []logLine
	size    int // bytes in the queue and in the current write
	dropped int // lines not written
	closed  bool
}

// logHandler formats records and passes them to a sink.
type logHandler struct {
	slog.Handler // writes to sink.buf
	sink         *logSink
}

// newLogHandler returns a handler with a new sink. The sink's goroutine writes the lines, and ends with it.
func newLogHandler(conf *config.Config, options slog.HandlerOptions, out logOutput) logHandler {
	s := &logSink{out: out, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.format = newLogFormat(conf, &s.buf, options)
	go s.run()
	return logHandler{s.format, s}
}

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	s := h.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	line, err := s.line(ctx, h.Handler, r)
	if err != nil {
		return err
	}
	if s.closed || s.size+len(line.text) > logQueue {
		s.dropped++
		return nil
	}
	s.queue = append(s.queue, line)
	s.size += len(line.text)
	s.poke()
	return nil
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs), h.sink}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name), h.sink}
}

// line formats a record. mu is locked.
func (s *logSink) line(ctx context.Context, format slog.Handler, r slog.Record) (logLine, error) {
	s.buf.Reset()
	err := format.Handle(ctx, r)
	return logLine{r.Level, bytes.Clone(s.buf.Bytes())}, err
}

// poke wakes the goroutine to check the queue and the destination.
func (s *logSink) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run writes queued lines until the sink is closed.
func (s *logSink) run() {
	defer close(s.done)
	defer s.out.close()
	for range s.wake {
		for {
			lines, dropped, closed := s.take()
			err := s.out.write(lines)
			s.written(lines, dropped, err)
			if len(lines) == 0 {
				if closed {
					return
				}
				break
			}
		}
	}
}

// take empties the queue. If lines were dropped, a line with their number comes first.
func (s *logSink) take() (lines []logLine, dropped int, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines, s.queue = s.queue, nil
	if len(lines) > 0 && s.dropped > 0 {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "lines of the log could not be written", 0)
		r.AddAttrs(slog.Int("lines", s.dropped))
		if note, err := s.line(context.Background(), s.format, r); err == nil {
			dropped = s.dropped
			lines = append([]logLine{note}, lines...)
			s.size += len(note.text)
		}
	}
	return lines, dropped, s.closed
}

// written records the result of writing lines of take. On an error it adds them to the dropped lines; otherwise the
// dropped lines of the note are reported.
func (s *logSink) written(lines []logLine, dropped int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lines {
		s.size -= len(l.text)
	}
	if err == nil {
		s.dropped -= dropped
		return
	}
	s.dropped += len(lines)
	if dropped > 0 {
		s.dropped-- // the note itself is no line of the log
	}
}

// close waits up to logFlushTimeout until the rest is written.
func (s *logSink) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.poke()
	select {
	case <-s.done:
	case <-time.After(logFlushTimeout):
	}
}

// appLog is the log of the program.
type appLog struct {
	*slog.Logger
	sinks []*logSink
	level slog.LevelVar
}

// close waits a short time until all lines are written.
func (l *appLog) close() {
	for _, s := range l.sinks {
		s.close()
	}
}

// reopen makes file destinations open their paths again.
func (l *appLog) reopen() {
	for _, s := range l.sinks {
		s.poke()
	}
}

// openLog opens the log: to the log file or stdout, and to syslog if configured. CONFIG SET changes the level and the
// format.
func openLog(conf *config.Config, stdout io.Writer) (*appLog, error) {
	set := conf.Get()
	l := new(appLog)
	l.level.Set(set.Log.Level)
	var out logOutput = logStream{stdout}
	if set.Log.File != "" {
		f, err := openLogFile(set.Log.File)
		if err != nil {
			return nil, err
		}
		out = f
	}
	handlers := []slog.Handler{l.sink(conf, out, nameLevel)}
	if set.Log.SyslogEnabled {
		out, err := openSyslog(&set.Log)
		if err != nil {
			return nil, err
		}
		handlers = append(handlers, l.sink(conf, out, withoutTimeAndLevel))
	}
	l.Logger = slog.New(slog.NewMultiHandler(handlers...))
	conf.Follow(func(set *config.Settings) { l.level.Set(set.Log.Level) }, "loglevel")
	return l, nil
}

// sink adds a destination.
func (l *appLog) sink(conf *config.Config, out logOutput, attr func([]string, slog.Attr) slog.Attr) slog.Handler {
	h := newLogHandler(conf, slog.HandlerOptions{Level: &l.level, ReplaceAttr: attr}, out)
	l.sinks = append(l.sinks, h.sink)
	return h
}

// logStream is a destination that is never opened again.
type logStream struct{ io.Writer }

func (l logStream) write(lines []logLine) error {
	var all []byte
	for _, line := range lines {
		all = append(all, line.text...)
	}
	if len(all) == 0 {
		return nil
	}
	_, err := l.Write(all)
	return err
}

func (l logStream) close() {}

// logFile is a log file. If it is renamed or removed meanwhile, a new file is created.
type logFile struct {
	path string
	file *os.File
}

func openLogFile(path string) (*logFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file, err := openForLog(path)
	return &logFile{path, file}, err
}

func openForLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
}

// write writes to the file that is now at the path. If it cannot open that, the old file gets the lines.
func (l *logFile) write(lines []logLine) error {
	there, err := os.Stat(l.path)
	mine, mineErr := l.file.Stat()
	if err != nil || mineErr != nil || !os.SameFile(there, mine) {
		if file, err := openForLog(l.path); err == nil {
			l.file.Close()
			l.file = file
		}
	}
	return logStream{l.file}.write(lines)
}

func (l *logFile) close() { l.file.Close() }

// withoutTimeAndLevel leaves out attributes that syslog adds itself.
func withoutTimeAndLevel(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// nameLevel gives levels the names of the directive loglevel.
func nameLevel(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 || a.Key != slog.LevelKey {
		return a
	}
	level, _ := a.Value.Any().(slog.Level)
	name := "error"
	switch {
	case level < config.LevelVerbose:
		name = "debug"
	case level < slog.LevelInfo:
		name = "verbose"
	case level < slog.LevelWarn:
		name = "notice"
	case level < slog.LevelError:
		name = "warning"
	}
	return slog.String(slog.LevelKey, name)
}
