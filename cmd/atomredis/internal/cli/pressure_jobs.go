package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/pressure"
)

// This file has the sub-commands and flags of pressure for queues of jobs; they need atomredis.

// policyFlags adds the flags for the attempts at messages.
func policyFlags(c *cobra.Command, p *pressure.Policy) {
	c.Flags().IntVar(&p.Attempts, "attempts", 0, "how often a message is handed out before it is dead (0: any number)")
	c.Flags().DurationVar(&p.Backoff, "backoff", 0, "pause after the first failed attempt, doubled after each further one")
}

// jobFlags are the flags for messages that are put.
type jobFlags struct{ job pressure.Job }

// add adds the flags.
func (f *jobFlags) add(c *cobra.Command) {
	policyFlags(c, &f.job.Policy)
	c.Flags().DurationVar(&f.job.Delay, "delay", 0, "keep the messages back for this time")
	c.Flags().TimeVar(&f.job.At, "at", time.Time{}, []string{time.RFC3339}, "keep the messages back until this time (RFC 3339)")
	c.Flags().IntVar(&f.job.Priority, "priority", 0, "messages with a higher one come first, from 0 to 9")
	c.Flags().StringVar(&f.job.Key, "key", "", "refuse a further message with this key, for the time of --within")
	c.Flags().DurationVar(&f.job.Within, "within", 0, "how long --key is refused")
}

// put puts messages, and returns how many it has put.
func (f *jobFlags) put(ctx context.Context, q *pressure.Queue, messages [][]byte) (n int, err error) {
	if f.job == (pressure.Job{}) {
		return q.PutAll(ctx, messages...)
	}
	for _, m := range messages {
		if err = q.PutJob(ctx, m, f.job); err != nil {
			break
		}
		n++
	}
	return n, err
}

// onQueue is the RunE of a command on a queue that exists.
func (a *app) onQueue(f *queueFlags, do func(ctx context.Context, q *pressure.Queue, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(c *cobra.Command, args []string) error {
		q, err := pressure.Open(c.Context(), a.client, args[0], f.options())
		if err != nil {
			return err
		}
		return do(c.Context(), q, args[1:])
	}
}

// counted writes a number with its name.
func (a *app) counted(name string, n int, err error) error {
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]int{name: n})
	}
	a.out.WriteString(strconv.Itoa(n) + "\n")
	return nil
}

// stateFlag adds the flag for the state of messages.
func stateFlag(c *cobra.Command, state *string, otherwise pressure.State, usage string) {
	c.Flags().StringVar(state, "state", strings.ToLower(string(otherwise)), usage)
}

// instant formats a time, "" if it is zero.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// shownMessage and shownSchedule have their message as a text in JSON.
type (
	shownMessage struct {
		pressure.Message
		Text string `json:"message"`
	}
	shownSchedule struct {
		pressure.Schedule
		Text string `json:"message"`
	}
)

func (a *app) pressurePeek(f *queueFlags) *cobra.Command {
	var state string
	var count int
	c := &cobra.Command{Use: "peek QUEUE", Short: "show messages and leave them in the queue", Args: Arguments(1, 1),
		Example: "  atomredis pressure peek jobs --state dead",
		RunE: a.onQueue(f, func(ctx context.Context, q *pressure.Queue, _ []string) error {
			messages, err := q.Peek(ctx, pressure.State(strings.ToUpper(state)), count)
			if err != nil {
				return err
			}
			if a.json {
				shown := make([]shownMessage, len(messages))
				for i, m := range messages {
					shown[i] = shownMessage{m, string(m.Message)}
				}
				return a.printJSON(shown)
			}
			rows := make([][]string, len(messages))
			for i, m := range messages {
				rows[i] = []string{m.ID, instant(m.At), strconv.Itoa(m.Attempts), strconv.Itoa(m.Priority), m.Reason,
					strconv.Quote(string(m.Message))}
			}
			return a.table([]string{"id", "at", "attempts", "priority", "reason", "message"}, rows)
		})}
	stateFlag(c, &state, pressure.Ready, "ready, delayed, reserved or dead")
	c.Flags().IntVar(&count, "count", 10, "how many messages")
	return c
}

func (a *app) pressureRetry(f *queueFlags) *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "retry QUEUE [ID...]", Short: "put dead messages back into their queue", Args: Arguments(1, -1),
		Example: "  atomredis pressure retry jobs --all",
		RunE: a.onQueue(f, func(ctx context.Context, q *pressure.Queue, ids []string) error {
			switch {
			case all == (len(ids) > 0):
				return Usagef("either --all or ids")
			case all:
				n, err := q.RetryAll(ctx)
				return a.counted("retried", n, err)
			}
			n, err := q.Retry(ctx, ids...)
			return a.counted("retried", n, err)
		})}
	c.Flags().BoolVar(&all, "all", false, "all dead messages")
	return c
}

func (a *app) pressurePurge(f *queueFlags) *cobra.Command {
	var state string
	c := &cobra.Command{Use: "purge QUEUE", Short: "remove all messages in a state", Args: Arguments(1, 1),
		Example: "  atomredis pressure purge jobs --state dead",
		RunE: a.onQueue(f, func(ctx context.Context, q *pressure.Queue, _ []string) error {
			n, err := q.Purge(ctx, pressure.State(strings.ToUpper(state)))
			return a.counted("purged", n, err)
		})}
	stateFlag(c, &state, pressure.Ready, "ready, delayed or dead")
	return c
}

func (a *app) pressureStats(f *queueFlags) *cobra.Command {
	var minutes int
	c := &cobra.Command{Use: "stats QUEUE", Short: "show what happened in a queue by minute", Args: Arguments(1, 1),
		Example: "  atomredis pressure stats jobs --minutes 60",
		RunE: a.onQueue(f, func(ctx context.Context, q *pressure.Queue, _ []string) error {
			all, err := q.Stats(ctx, minutes)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := make([][]string, len(all))
			for i, m := range all {
				rows[i] = []string{instant(m.At)}
				for _, n := range []int64{m.Put, m.Taken, m.Acked, m.Failed, m.Dead} {
					rows[i] = append(rows[i], strconv.FormatInt(n, 10))
				}
			}
			return a.table([]string{"minute", "put", "taken", "acked", "failed", "dead"}, rows)
		})}
	c.Flags().IntVar(&minutes, "minutes", 10, "how many minutes, up to 60")
	return c
}

func (a *app) pressureSchedule(f *queueFlags) *cobra.Command {
	return &cobra.Command{Use: "schedule QUEUE NAME CRON MESSAGE", Short: "put a message at the times of a cron expression",
		Args:    Arguments(4, 4),
		Example: "  atomredis pressure schedule reports daily 'CRON_TZ=Europe/Sofia 30 6 * * 1-5' 'write the report'",
		RunE: a.onQueue(f, func(ctx context.Context, q *pressure.Queue, args []string) error {
			next, err := q.Schedule(ctx, args[0], args[1], []byte(args[2]))
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]time.Time{"next": next})
			}
			a.out.WriteString(instant(next) + "\n")
			return nil
		})}
}

func (a *app) pressureUnschedule(f *queueFlags) *cobra.Command {
	return &cobra.Command{Use: "unschedule QUEUE NAME...", Short: "remove schedules", Args: Arguments(2, -1),
		Example: "  atomredis pressure unschedule reports daily",
		RunE: a.onQueue(f, func(ctx context.Context, q *pressure.Queue, names []string) error {
			n, err := q.Unschedule(ctx, names...)
			if err == nil && n < len(names) {
				err = errors.New("there is no such schedule")
			}
			return err
		})}
}

func (a *app) pressureSchedules(f *queueFlags) *cobra.Command {
	return &cobra.Command{Use: "schedules QUEUE", Short: "list the schedules of a queue", Args: Arguments(1, 1),
		Example: "  atomredis pressure schedules reports",
		RunE: a.onQueue(f, func(ctx context.Context, q *pressure.Queue, _ []string) error {
			all, err := q.Schedules(ctx)
			if err != nil {
				return err
			}
			if a.json {
				shown := make([]shownSchedule, len(all))
				for i, s := range all {
					shown[i] = shownSchedule{s, string(s.Message)}
				}
				return a.printJSON(shown)
			}
			rows := make([][]string, len(all))
			for i, s := range all {
				rows[i] = []string{s.Name, s.Cron, instant(s.Next), strconv.Quote(string(s.Message))}
			}
			return a.table([]string{"schedule", "cron", "next", "message"}, rows)
		})}
}
