//go:build unix

package main

import (
	"log/slog"
	"log/syslog"

	"github.com/atomredis/atomredis/internal/config"
)

// syslogOutput writes to syslog. It connects when there is something to write, and again after the connection was lost.
type syslogOutput struct {
	dial func() (*syslog.Writer, error)
	w    *syslog.Writer
}

// openSyslog returns syslog with the configured facility and name.
func openSyslog(log *config.LogSettings) (logOutput, error) {
	facility := syslog.LOG_USER
	if f := log.SyslogFacility; f >= 0 {
		facility = syslog.LOG_LOCAL0 + syslog.Priority(f)<<3
	}
	ident := log.SyslogIdent
	return &syslogOutput{dial: func() (*syslog.Writer, error) { return syslog.New(facility|syslog.LOG_NOTICE, ident) }},
		nil
}

func (o *syslogOutput) write(lines []logLine) error {
	if len(lines) == 0 {
		return nil
	}
	if o.w == nil {
		w, err := o.dial()
		if err != nil {
			return err
		}
		o.w = w
	}
	for _, l := range lines {
		if err := o.send(l); err != nil {
			return err
		}
	}
	return nil
}

// send writes a line with Redis's severity for its level.
func (o *syslogOutput) send(l logLine) error {
	switch {
	case l.level < config.LevelVerbose:
		return o.w.Debug(string(l.text))
	case l.level < slog.LevelInfo:
		return o.w.Info(string(l.text))
	case l.level < slog.LevelWarn:
		return o.w.Notice(string(l.text))
	}
	return o.w.Warning(string(l.text))
}

func (o *syslogOutput) close() {
	if o.w != nil {
		o.w.Close()
	}
}
