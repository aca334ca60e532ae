package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

// table writes rows: aligned and with a header on a terminal, otherwise with a tab between columns.
func (a *app) table(header []string, rows [][]string) error {
	if !a.terminal {
		for _, row := range rows {
			if _, err := fmt.Fprintln(a.out, strings.Join(cells(row), "\t")); err != nil {
				return err
			}
		}
		return a.out.Flush()
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(header, "\t")))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(cells(row), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return a.out.Flush()
}

// titledTable is a table that has its header also when it is not written to a terminal.
func (a *app) titledTable(header []string, rows [][]string) error {
	if !a.terminal {
		titles := strings.Split(strings.ToUpper(strings.Join(header, "\t")), "\t")
		rows = append([][]string{titles}, rows...)
	}
	return a.table(header, rows)
}

// cells quotes cells that would break a table.
func cells(row []string) []string {
	quoted := make([]string, len(row))
	for i, cell := range row {
		if quoted[i] = cell; strings.ContainsFunc(cell, unicode.IsControl) {
			quoted[i] = strconv.Quote(cell)
		}
	}
	return quoted
}

// printJSON writes a value as one line of JSON. Invalid UTF-8 is replaced.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return a.out.Flush()
}

// names writes a list of names.
func (a *app) names(header string, names []string) error {
	if a.json {
		return a.printJSON(append([]string{}, names...))
	}
	rows := make([][]string, len(names))
	for i, name := range names {
		rows[i] = []string{name}
	}
	return a.table([]string{header}, rows)
}

// clear clears a terminal.
func (a *app) clear() {
	if a.terminal {
		a.out.WriteString("\x1b[H\x1b[2J")
	}
}

// printed writes lines and flushes the output.
func (a *app) printed(lines ...string) error {
	for _, line := range lines {
		a.out.WriteString(line)
		a.out.WriteByte('\n')
	}
	return a.out.Flush()
}

func newWriter(w io.Writer) *bufio.Writer { return bufio.NewWriterSize(w, 64<<10) }
