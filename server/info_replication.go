package server

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/internal/replication/psync"
	"github.com/atomredis/atomredis/internal/stats"
)

// infoReplication shows the server as a master and as a replica, if it is one.
func infoReplication(b *servercommands.InfoText, c *command.Ctx) {
	list, offset := serverOf(c).Followers()
	if st, follows := serverOf(c).Master(); !follows {
		b.Text("role", "master")
	} else {
		offset = max(st.Offset, 0)
		b.Text("role", "slave")
		b.Text("master_host", st.Host)
		b.Number("master_port", int64(st.Port))
		up := "down"
		if st.State == replication.LinkConnected {
			up = "up"
		}
		b.Text("master_link_status", up)
		heard := int64(-1)
		if st.State == replication.LinkConnected {
			heard = int64(time.Since(st.Heard).Seconds())
		}
		b.Number("master_last_io_seconds_ago", heard)
		b.Flag("master_sync_in_progress", st.State == replication.LinkSync)
		b.Number("slave_read_repl_offset", st.Offset)
		b.Number("slave_repl_offset", st.Offset)
		if st.State == replication.LinkSync {
			b.Number("master_sync_total_bytes", max(st.Size, 0))
			b.Number("master_sync_read_bytes", st.Received)
			b.Number("master_sync_left_bytes", max(st.Size-st.Received, 0))
			b.Text("master_sync_perc", strconv.FormatFloat(100*stats.Ratio(st.Received, st.Size), 'f', 2, 64))
			b.Number("master_sync_last_io_seconds_ago", int64(time.Since(st.Heard).Seconds()))
		}
		if st.State != replication.LinkConnected {
			down := int64(-1) // it was never up
			if !st.Down.IsZero() {
				down = int64(time.Since(st.Down).Seconds())
			}
			b.Number("master_link_down_since_seconds", down)
		}
		if st.Problem != "" {
			b.Text("master_link_last_error", command.OneLine(st.Problem))
		}
		set := serverOf(c).config.Get()
		b.Number("slave_priority", int64(set.Replication.Priority))
		b.Number("slave_read_only", 1)
		b.Flag("replica_announced", set.Replication.Announced)
	}
	b.Number("connected_slaves", int64(len(list)))
	if set := serverOf(c).config.Get(); set.Replication.MinReplicas > 0 && set.Replication.MinReplicasMaxLag > 0 {
		b.Number("min_slaves_good_slaves", int64(serverOf(c).followed.Good(set)))
	}
	for i, f := range list {
		b.Text("slave"+strconv.Itoa(i), fmt.Sprintf("ip=%s,port=%d,state=%s,offset=%d,lag=%d", f.Host, f.Port, f.State,
			f.Acked, f.Lag))
	}
	serverOf(c).group.members.Info(b.Text)
	b.Text("master_failover_state", serverOf(c).followed.FailoverState())
	infoBacklog(b, serverOf(c).followed.Backlog(), offset)
}

// infoBacklog shows the history.
func infoBacklog(b *servercommands.InfoText, h psync.Backlog, offset int64) {
	b.Text("master_replid", h.ID)
	former, second := strings.Repeat("0", len(h.ID)), int64(-1)
	if h.Former.ID != "" {
		former, second = h.Former.ID, h.Former.Shared+1 // the first offset that is not part of that history
	}
	b.Text("master_replid2", former)
	b.Number("master_repl_offset", offset)
	b.Number("second_repl_offset", second)
	b.Flag("repl_backlog_active", h.Known)
	b.Number("repl_backlog_size", int64(h.Max))
	first := int64(0)
	if h.Known {
		first = h.Offset - int64(h.Kept) + 1
	}
	b.Number("repl_backlog_first_byte_offset", first)
	b.Number("repl_backlog_histlen", int64(h.Kept))
}
