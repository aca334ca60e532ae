package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/process"
)

// INFO's sections of processor time, commands and their latency.

// infoCPU shows the event loops as the main thread; without any it shows the process.
func infoCPU(b *servercommands.InfoText, c *command.Ctx) {
	system, user, ok := process.CPUSeconds()
	if !ok {
		return
	}
	b.Seconds("used_cpu_sys", system)
	b.Seconds("used_cpu_user", user)
	b.Seconds("used_cpu_sys_children", 0)
	b.Seconds("used_cpu_user_children", 0)
	if l := serverOf(c).loops; l != nil {
		times := l.ProcessorTimes()
		system, user = times.System.Seconds(), times.User.Seconds()
	}
	b.Seconds("used_cpu_sys_main_thread", system)
	b.Seconds("used_cpu_user_main_thread", user)
}

func infoCommandStats(b *servercommands.InfoText, c *command.Ctx) {
	srv := serverOf(c)
	var all []*command.Command
	for _, cmd := range srv.table.Commands() {
		all = append(append(all, cmd), cmd.Subs...)
	}
	slices.SortFunc(all, func(x, y *command.Command) int { return cmp.Compare(x.Name, y.Name) })
	for _, cmd := range all {
		s := srv.sessions.CommandStats.Seen(cmd)
		calls, rejected, failed := s.Calls.Load(), s.Rejected.Load(), s.Failed.Load()
		if calls == 0 && rejected == 0 && failed == 0 {
			continue
		}
		usec := float64(s.Nanos.Load()) / 1000
		perCall := 0.0
		if calls > 0 {
			perCall = usec / float64(calls)
		}
		fmt.Fprintf(b, "cmdstat_%s:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d", cmd.Name, calls, int64(usec),
			perCall, rejected, failed)
		if slow := s.Slow(); slow.Calls > 0 {
			fmt.Fprintf(b, ",slowlog_count=%d,slowlog_time_ms_sum=%s,slowlog_time_ms_max=%s", slow.Calls,
				servercommands.Milliseconds(slow.Total), servercommands.Milliseconds(slow.Longest))
		}
		b.WriteString("\r\n")
	}
}

func infoErrorStats(b *servercommands.InfoText, c *command.Ctx) {
	serverOf(c).sessions.Counters.Errors.Each(func(code string, n int64) { fmt.Fprintf(b, "errorstat_%s:count=%d\r\n", code, n) })
}

func infoLatencyStats(b *servercommands.InfoText, c *command.Ctx) {
	srv := serverOf(c)
	percentiles := srv.config.Get().Monitoring.LatencyPercentiles
	for cmd := range srv.table.All {
		h := srv.sessions.CommandStats.Seen(cmd).Histogram()
		if h == nil {
			continue
		}
		parts := make([]string, len(percentiles))
		for i, p := range percentiles {
			parts[i] = fmt.Sprintf("p%s=%.3f", config.PercentileText(p), float64(h.Percentile(p))/1000)
		}
		b.Text("latency_percentiles_usec_"+cmd.Name, strings.Join(parts, ","))
	}
}
