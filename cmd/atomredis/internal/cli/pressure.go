package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/pressure"
)

// queueFlags are the flags of all commands on queues.
type queueFlags struct {
	prefix  string
	timeout time.Duration
	policy  pressure.Policy
}

func (f *queueFlags) options() pressure.Options {
	return pressure.Options{Prefix: f.prefix, Timeout: f.timeout, Policy: f.policy}
}

func (a *app) pressure() *cobra.Command {
	f := &queueFlags{}
	c := group("pressure", "bounded queues on a Redis server, by the pressure protocol",
		a.pressureCreate(f), a.pressurePut(f), a.pressureGet(f), a.pressureClose(f), a.pressureDelete(f), a.pressureInfo(f),
		a.pressureList(f), a.pressurePeek(f), a.pressureRetry(f), a.pressurePurge(f), a.pressureStats(f), a.pressureSchedule(f),
		a.pressureUnschedule(f), a.pressureSchedules(f))
	c.Example = `  seq 1000 | atomredis pressure put numbers --create --bound 100 --close
  atomredis pressure get numbers --all -h server`
	c.PersistentFlags().StringVar(&f.prefix, "prefix", pressure.DefaultPrefix, "prefix of the keys of queues")
	return c
}

// waiting adds the flag of commands that wait.
func (f *queueFlags) waiting(c *cobra.Command) *cobra.Command {
	c.Flags().DurationVar(&f.timeout, "timeout", 0, "give up after this time (0: never)")
	return c
}

func (a *app) pressureCreate(f *queueFlags) *cobra.Command {
	var bound int64
	c := &cobra.Command{Use: "create QUEUE", Short: "create a queue", Args: Arguments(1, 1),
		Example: "  atomredis pressure create frames --bound 10",
		RunE: func(c *cobra.Command, args []string) error {
			_, err := pressure.Create(c.Context(), a.client, args[0], bound, f.options())
			return err
		}}
	c.Flags().Int64Var(&bound, "bound", 0, "how many messages the queue holds (0: any number)")
	policyFlags(c, &f.policy)
	return c
}

func (a *app) pressureClose(f *queueFlags) *cobra.Command {
	return f.waiting(&cobra.Command{Use: "close QUEUE", Short: "close a queue: no more messages can be put",
		Args:    Arguments(1, 1),
		Example: "  atomredis pressure close frames",
		RunE: func(c *cobra.Command, args []string) error {
			q, err := pressure.Open(c.Context(), a.client, args[0], f.options())
			if err != nil {
				return err
			}
			return q.Close(c.Context())
		}})
}

func (a *app) pressureDelete(f *queueFlags) *cobra.Command {
	return f.waiting(&cobra.Command{Use: "delete QUEUE", Short: "delete a queue and its messages",
		Args:    Arguments(1, 1),
		Example: "  atomredis pressure delete frames --timeout 5s",
		RunE: func(c *cobra.Command, args []string) error {
			return pressure.Delete(c.Context(), a.client, args[0], f.options())
		}})
}

func (a *app) pressureList(f *queueFlags) *cobra.Command {
	return &cobra.Command{Use: "list", Short: "list the queues", Args: Arguments(0, 0),
		Example: "  atomredis pressure list --json",
		RunE: func(c *cobra.Command, _ []string) error {
			names, err := pressure.List(c.Context(), a.client, f.options())
			if err != nil {
				return err
			}
			return a.names("queue", names)
		}}
}

func (a *app) pressureInfo(f *queueFlags) *cobra.Command {
	var watch bool
	var interval time.Duration
	c := &cobra.Command{Use: "info QUEUE", Short: "describe a queue", Args: Arguments(1, 1),
		Example: "  atomredis pressure info frames --watch",
		RunE: func(c *cobra.Command, args []string) error {
			if interval <= 0 {
				return Usagef("invalid interval %s", interval)
			}
			q, err := pressure.Open(c.Context(), a.client, args[0], f.options())
			if err != nil {
				return err
			}
			for {
				info, err := q.Info(c.Context())
				if err == nil {
					if watch {
						a.clear()
					}
					err = a.queueInfo(info)
				}
				if watch {
					err = ended(c.Context(), err)
				}
				if err != nil || !watch || c.Context().Err() != nil {
					return err
				}
				select {
				case <-c.Context().Done():
					return nil
				case <-time.After(interval):
				}
			}
		}}
	c.Flags().BoolVar(&watch, "watch", false, "repeat, until interrupted")
	c.Flags().DurationVar(&interval, "interval", time.Second, "time between two looks")
	return c
}

func (a *app) queueInfo(info *pressure.Info) error {
	if a.json {
		return a.printJSON(info)
	}
	var rows [][]string
	text := func(name, value string) { rows = append(rows, []string{name, value}) }
	number := func(name string, n int64) {
		if n >= 0 { // the server does not report negative ones
			text(name, strconv.FormatInt(n, 10))
		}
	}
	flag := func(name string, set bool) {
		if set {
			text(name, "yes")
		} else {
			text(name, "no")
		}
	}
	number("length", info.Length)
	number("bound", info.Bound)
	flag("closed", info.Closed)
	text("producer", info.Producer)
	flag("producer free", info.ProducerFree)
	text("consumer", info.Consumer)
	flag("consumer free", info.ConsumerFree)
	number("produced messages", info.ProducedMessages)
	number("produced bytes", info.ProducedBytes)
	number("consumed messages", info.ConsumedMessages)
	number("consumed bytes", info.ConsumedBytes)
	number("blocked producers", info.BlockedProducers)
	number("blocked consumers", info.BlockedConsumers)
	number("reserved", info.Reserved)
	number("redelivered", info.Redelivered)
	number("delayed", info.Delayed)
	number("dead", info.Dead)
	number("schedules", info.Schedules)
	return a.table([]string{"field", "value"}, rows)
}

func (a *app) pressurePut(f *queueFlags) *cobra.Command {
	var null, closeAfter, create bool
	var bound int64
	var job jobFlags
	c := &cobra.Command{Use: "put QUEUE [MESSAGE...]", Short: "put messages, or the lines of standard input, into a queue",
		Args: Arguments(1, -1), Example: "  seq 1000 | atomredis pressure put numbers --create --bound 100 --close",
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			if !create && c.Flags().Changed("bound") {
				return Usagef("--bound needs --create")
			}
			q, err := a.open(ctx, args[0], create, bound, f.options())
			if err != nil {
				return err
			}
			put := 0
			for batch := range a.batches(ctx, args[1:], delimiter(null)) {
				var n int
				if err = batch.err; err == nil {
					n, err = job.put(ctx, q, batch.messages)
				}
				put += n
				if err != nil {
					return fmt.Errorf("after %d messages: %w", put, err)
				}
			}
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("after %d messages: %w", put, err)
			}
			if closeAfter {
				if err := q.Close(ctx); err != nil {
					return err
				}
			}
			if a.json {
				return a.printJSON(map[string]int{"put": put})
			}
			return nil
		}}
	c.Flags().BoolVarP(&null, "null", "0", false, "messages of the input end with NUL instead of a line break")
	job.add(c)
	c.Flags().BoolVar(&closeAfter, "close", false, "close the queue at the end of the input")
	c.Flags().BoolVar(&create, "create", false, "create the queue if there is none")
	c.Flags().Int64Var(&bound, "bound", 0, "how many messages a queue holds that is created (0: any number)")
	return f.waiting(c)
}

func (a *app) open(ctx context.Context, name string, create bool, bound int64, o pressure.Options) (*pressure.Queue,
	error) {
	if create {
		q, err := pressure.Create(ctx, a.client, name, bound, o)
		if !errors.Is(err, pressure.ErrQueueExists) {
			return q, err
		}
	}
	return pressure.Open(ctx, a.client, name, o)
}

func delimiter(null bool) byte {
	if null {
		return 0
	}
	return '\n'
}

// getBatch is how many messages one request gets.
const getBatch = 1024

func (a *app) pressureGet(f *queueFlags) *cobra.Command {
	var null, all, wait, create bool
	var count int
	var bound int64
	var reserve time.Duration
	c := &cobra.Command{Use: "get QUEUE", Short: "get messages out of a queue, a line each", Args: Arguments(1, 1),
		Example: "  atomredis pressure get numbers --all --wait",
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			switch {
			case count < 1:
				return Usagef("invalid count %d", count)
			case all && c.Flags().Changed("count"):
				return Usagef("either --all or --count")
			case reserve < 0:
				return Usagef("invalid time %s", reserve)
			case wait && create:
				return Usagef("either --wait or --create")
			case !create && c.Flags().Changed("bound"):
				return Usagef("--bound needs --create")
			}
			var q *pressure.Queue
			var err error
			if wait {
				q, err = pressure.Await(ctx, a.client, args[0], f.options())
			} else {
				q, err = a.open(ctx, args[0], create, bound, f.options())
			}
			if err != nil {
				return err
			}
			end := delimiter(null)
			for left := count; all || left > 0; {
				n := getBatch
				if !all {
					n = min(n, left)
				}
				got, err := a.getMessages(ctx, q, n, reserve, end)
				if all && errors.Is(err, pressure.ErrClosed) {
					return nil
				}
				if err != nil {
					return err
				}
				left -= got
			}
			return nil
		}}
	c.Flags().BoolVarP(&null, "null", "0", false, "end messages with NUL instead of a line break")
	c.Flags().BoolVar(&all, "all", false, "until the queue is closed and empty")
	c.Flags().BoolVar(&wait, "wait", false, "wait until there is such a queue")
	c.Flags().BoolVar(&create, "create", false, "create the queue if there is none")
	c.Flags().Int64Var(&bound, "bound", 0, "how many messages a queue holds that is created (0: any number)")
	c.Flags().IntVar(&count, "count", 1, "how many messages")
	c.Flags().DurationVar(&reserve, "reserve", 0,
		"return messages to the queue that could not be written within this time (atomredis only)")
	return f.waiting(c)
}

// getMessages writes up to n messages. Reserved messages leave the queue only after they have been written.
func (a *app) getMessages(ctx context.Context, q *pressure.Queue, n int, reserve time.Duration, end byte) (int, error) {
	if reserve == 0 {
		messages, err := q.GetN(ctx, n)
		for _, m := range messages {
			if err = a.message(m, end); err != nil {
				return 0, err
			}
		}
		return len(messages), errors.Join(err, a.out.Flush())
	}
	reserved, err := q.ReserveN(ctx, n, reserve)
	if err != nil {
		return 0, err
	}
	ids := make([]string, len(reserved))
	for i, r := range reserved {
		ids[i] = r.ID
		if err = a.message(r.Message, end); err != nil {
			return 0, err
		}
	}
	if err := a.out.Flush(); err != nil {
		return 0, err
	}
	acknowledged, err := q.Ack(context.WithoutCancel(ctx), ids...)
	if err == nil && acknowledged < len(ids) {
		err = fmt.Errorf("%d messages were written too late and will come again", len(ids)-acknowledged)
	}
	return len(ids), err
}

func (a *app) message(m []byte, end byte) error {
	if a.json {
		return a.printJSON(string(m))
	}
	a.out.Write(m)
	return a.out.WriteByte(end)
}
