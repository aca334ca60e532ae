package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/stats"
)

func init() { command.Register([]*command.Command{infoCommand}) }

// infoCommand shows the server's state. Its flag WholeKeyspace lets it read the counters of all shards.
var infoCommand = &command.Command{Name: "info", Group: "server", Since: "1.0.0", Arity: -1,
	Flags:   command.Loading | command.Stale | command.WholeKeyspace,
	ACL:     command.CatDangerous,
	Summary: "Shows state and statistics of the server",
	Syntax:  "[section [section ...]]", Complexity: "O(1)", Do: info}

// InfoSection is one part of INFO.
type InfoSection struct {
	Name   string
	Extra  bool   // shown only by name, or with "all" or "everything"
	Named  bool   // shown only by name: it takes long
	Module string // the module of Redis it is about; shown with "modules" and "everything", but not with "all"
	Write  func(b *InfoText, c *command.Ctx)
}

func info(c *command.Ctx) {
	var b InfoText
	for _, s := range hostOf(c).InfoSections() {
		if s.wanted(c.Args[1:]) {
			b.section(s.Name)
			s.Write(&b, c)
		}
	}
	c.W.Verbatim("txt", b.String())
}

// wanted reports whether the section is requested.
func (s *InfoSection) wanted(words [][]byte) bool {
	if len(words) == 0 {
		return s.usual()
	}
	return slices.ContainsFunc(words, func(w []byte) bool {
		switch name := command.Lower(w); name {
		case "default":
			return s.usual()
		case "all":
			return !s.Named && s.Module == ""
		case "everything":
			return !s.Named
		case "modules":
			return s.Module != "" || s.Name == "Modules"
		default:
			return name == strings.ToLower(s.Name) || s.Module != "" && name == s.Module
		}
	})
}

// usual reports whether INFO without arguments shows the section.
func (s *InfoSection) usual() bool { return !s.Extra && !s.Named && s.Module == "" }

// InfoText builds the reply of INFO.
type InfoText struct{ strings.Builder }

func (b *InfoText) section(name string) {
	if b.Len() > 0 {
		b.WriteString("\r\n")
	}
	b.WriteString("# " + name + "\r\n")
}

// Text writes a text field.
func (b *InfoText) Text(name, value string) { b.WriteString(name + ":" + value + "\r\n") }

// Number writes an integer field.
func (b *InfoText) Number(name string, n int64) { b.Text(name, strconv.FormatInt(n, 10)) }

// Zeros writes zeros for fields that have no meaning here.
func (b *InfoText) Zeros(names ...string) {
	for _, name := range names {
		b.Number(name, 0)
	}
}

// Flag writes 1 for true and 0 for false.
func (b *InfoText) Flag(name string, set bool) {
	if set {
		b.Number(name, 1)
	} else {
		b.Number(name, 0)
	}
}

// Bytes writes a size as a number of bytes and in a readable form.
func (b *InfoText) Bytes(name string, n int64) {
	b.Number(name, n)
	b.Text(name+"_human", humanBytes(n))
}

// humanBytes returns a size as 12B, 1.50K, 2.00M, …
func humanBytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + "B"
	}
	f := float64(n) / 1024
	for _, unit := range "KMGT" {
		if f < 1024 {
			return fmt.Sprintf("%.2f%c", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.2fP", f)
}

// Float writes a number with a fraction.
func (b *InfoText) Float(name string, f float64) { b.Text(name, strconv.FormatFloat(f, 'g', 17, 64)) }

// Ratio writes a ratio of two sizes.
func (b *InfoText) Ratio(name string, part, of int64) {
	b.Text(name, strconv.FormatFloat(stats.Ratio(part, of), 'f', 2, 64))
}

// Milliseconds writes a time in ms.
func (b *InfoText) Milliseconds(name string, d time.Duration) { b.Text(name, Milliseconds(d)) }

// Milliseconds returns a time in ms, with two places.
func Milliseconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1000, 'f', 2, 64) }

// Seconds writes a time in s.
func (b *InfoText) Seconds(name string, s float64) { b.Text(name, strconv.FormatFloat(s, 'f', 6, 64)) }
