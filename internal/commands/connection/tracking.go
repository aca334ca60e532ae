package connection

import (
	"fmt"
	"strings"

	"github.com/atomredis/atomredis/internal/clients/tracking"
	"github.com/atomredis/atomredis/internal/command"
)

// This file has CLIENT TRACKING and related commands.

func clientTracking(c *command.Ctx) {
	t := clientOf(c).Tracking()
	var mode tracking.Flags
	var redirect int64
	var prefixes []string
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("redirect") && o.More():
			if redirect != 0 {
				c.Err("ERR A client can only redirect to a single other client")
				return
			}
			var ok bool
			if redirect, ok = c.Int(o.Arg()); !ok {
				return
			}
			if _, ok := hostOf(c).ClientByID(redirect, c.Now()); !ok {
				c.Err("ERR The client ID you want redirect to does not exist")
				return
			}
		case o.Is("bcast"):
			mode |= tracking.Bcast
		case o.Is("optin"):
			mode |= tracking.OptIn
		case o.Is("optout"):
			mode |= tracking.OptOut
		case o.Is("noloop"):
			mode |= tracking.NoLoop
		case o.Is("prefix") && o.More():
			prefixes = append(prefixes, string(o.Arg()))
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	switch {
	case command.EqualFold(c.Args[2], "on"):
		if e := conflict(t, mode, prefixes); e != "" {
			c.Err(e)
			return
		}
		t.Start(mode, redirect, prefixes)
	case command.EqualFold(c.Args[2], "off"):
		t.Stop()
	default:
		c.Err(command.ErrSyntax)
		return
	}
	c.W.OK()
}

// conflict returns the error if options of CLIENT TRACKING ON contradict each other or the present mode.
func conflict(t *tracking.Client, mode tracking.Flags, prefixes []string) command.Error {
	const optInOut = tracking.OptIn | tracking.OptOut
	old := t.Flags()
	switch {
	case mode&tracking.Bcast == 0 && len(prefixes) > 0:
		return "ERR PREFIX option requires BCAST mode to be enabled"
	case t.On() && (old^mode)&tracking.Bcast != 0:
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	case mode&tracking.Bcast != 0 && mode&optInOut != 0:
		return "ERR OPTIN and OPTOUT are not compatible with BCAST"
	case mode&optInOut == optInOut:
		return "ERR You can't specify both OPTIN mode and OPTOUT mode"
	case (mode|old)&optInOut == optInOut:
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	}
	for i, p := range prefixes {
		for _, q := range t.Prefixes() {
			if overlap(p, q) {
				return command.Error(fmt.Sprintf("ERR Prefix '%s' overlaps with an existing prefix '%s'. Prefixes for a single client "+
					"must not overlap.", p, q))
			}
		}
		for _, q := range prefixes[i+1:] {
			if overlap(p, q) {
				return command.Error(fmt.Sprintf("ERR Prefix '%s' overlaps with another provided prefix '%s'. Prefixes for a single "+
					"client must not overlap.", p, q))
			}
		}
	}
	return ""
}

// overlap reports whether a key could begin with both.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

func clientCaching(c *command.Ctx) {
	t := clientOf(c).Tracking()
	if !t.On() {
		c.Err("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
		return
	}
	switch {
	case command.EqualFold(c.Args[2], "yes"):
		if t.Flags()&tracking.OptIn == 0 {
			c.Err("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
			return
		}
	case command.EqualFold(c.Args[2], "no"):
		if t.Flags()&tracking.OptOut == 0 {
			c.Err("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
			return
		}
	default:
		c.Err(command.ErrSyntax)
		return
	}
	t.Cache()
	c.W.OK()
}

func clientTrackinginfo(c *command.Ctx) {
	t := clientOf(c).Tracking()
	flags := t.Flags()
	names := []string{"off"}
	if flags&tracking.On != 0 {
		names = []string{"on"}
	}
	for _, f := range []struct {
		set  tracking.Flags
		name string
	}{
		{tracking.Bcast, "bcast"},
		{tracking.OptIn, "optin"}, {tracking.OptIn | tracking.Caching, "caching-yes"},
		{tracking.OptOut, "optout"}, {tracking.OptOut | tracking.Caching, "caching-no"},
		{tracking.NoLoop, "noloop"}, {tracking.Broken, "broken_redirect"},
	} {
		if flags&f.set == f.set {
			names = append(names, f.name)
		}
	}
	c.W.Map(3)
	c.W.BulkString("flags")
	c.W.Set(len(names))
	for _, n := range names {
		c.W.BulkString(n)
	}
	c.W.BulkString("redirect")
	c.W.Int(t.Redirection())
	c.W.BulkString("prefixes")
	c.W.Array(len(t.Prefixes()))
	for _, p := range t.Prefixes() {
		c.W.BulkString(p)
	}
}

func clientGetredir(c *command.Ctx) { c.W.Int(clientOf(c).Tracking().Redirection()) }
