package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// This file reads the statements that change rows and tables. A list of columns may end with a comma, as in H2.

// ifExists reads IF EXISTS, or IF NOT EXISTS. It also reads nothing.
func (p *parser) ifExists(not bool) bool {
	if !p.takes("IF") {
		return false
	}
	if not {
		p.needs("NOT")
	}
	p.needs("EXISTS")
	return true
}

// list calls one for each element of a list in brackets.
func (p *parser) list(one func()) {
	p.needs("(")
	for {
		one()
		if p.err != nil || !p.takes(",") || p.isNext(")") {
			break
		}
	}
	p.needs(")")
}

// isNext reports whether a word or sign is next.
func (p *parser) isNext(text string) bool {
	return p.tok.text == text && (p.tok.kind == tokenWord || p.tok.kind == tokenSign)
}

// columnNames reads a list of names.
func (p *parser) columnNames() (names []string) {
	p.list(func() {
		name, _ := p.name()
		names = append(names, name)
	})
	return names
}

func (p *parser) insert(st *Statement, kind Kind) {
	st.Kind = kind
	p.needs("INTO")
	p.table(st)
	if p.isNext("(") {
		st.names = p.columnNames()
	}
	if kind == Merge && p.takes("KEY") {
		p.columnNames() // the key of the table decides
	}
	p.needs("VALUES")
	for {
		var row []node
		p.list(func() {
			if p.takes("DEFAULT") {
				row = append(row, nil)
				return
			}
			row = append(row, p.or())
		})
		st.rows = append(st.rows, row)
		if p.err != nil || !p.takes(",") {
			return
		}
	}
}

func (p *parser) update(st *Statement) {
	st.Kind = Update
	p.table(st)
	p.readAlias(st)
	p.needs("SET")
	var row []node
	for {
		f, _ := p.field().(*field)
		st.names = append(st.names, f.name)
		p.needs("=")
		if p.takes("DEFAULT") {
			row = append(row, nil)
		} else {
			row = append(row, p.or())
		}
		if p.err != nil || !p.takes(",") {
			break
		}
	}
	st.rows = [][]node{row}
	if p.takes("WHERE") {
		st.where = p.or()
	}
	if p.takes("LIMIT") {
		st.limit = p.whole()
	}
}

func (p *parser) create(st *Statement) {
	if p.takes("TABLE") {
		st.Kind = CreateTable
		st.Optional = p.ifExists(true)
		p.table(st)
		p.list(func() { p.definition(st) })
		p.with(st)
		return
	}
	st.Kind = CreateIndex
	p.needs("INDEX")
	if st.Optional = p.ifExists(true); !p.isNext("ON") {
		st.Index, _ = p.name()
	}
	p.needs("ON")
	p.table(st)
	p.list(func() {
		name, _ := p.name()
		f := binary.IndexField{Name: name, Descending: p.takes("DESC")}
		if !f.Descending {
			p.takes("ASC")
		}
		st.indexed = append(st.indexed, f)
	})
	for p.takes("INLINE_SIZE") || p.takes("PARALLEL") {
		p.whole()
	}
}

func (p *parser) drop(st *Statement) {
	index := p.takes("INDEX")
	if !index {
		p.needs("TABLE")
	}
	optional := p.ifExists(false)
	p.table(st)
	st.Optional = p.ifExists(false) || optional
	if st.Kind = DropTable; index {
		st.Kind, st.Index, st.Table = DropIndex, st.Table, ""
	}
}

func (p *parser) alter(st *Statement) {
	p.needs("TABLE")
	st.Optional = p.ifExists(false)
	p.table(st)
	adds := p.takes("ADD")
	if st.Kind = AddColumns; !adds {
		st.Kind = DropColumns
		p.needs("DROP")
	}
	p.takes("COLUMN")
	st.skips = p.ifExists(adds)
	switch {
	case adds && p.isNext("("):
		p.list(func() { p.definition(st) })
	case adds:
		p.definition(st)
	case p.isNext("("):
		st.names = p.columnNames()
	default:
		name, _ := p.name()
		st.names = []string{name}
	}
	if len(st.primary) > 0 {
		p.fail() // the primary key is fixed
	}
}

// definition reads the definition of a column, or PRIMARY KEY.
func (p *parser) definition(st *Statement) {
	if p.takes("CONSTRAINT") && !p.isNext("PRIMARY") {
		p.name()
	}
	if p.takes("PRIMARY") {
		p.needs("KEY")
		p.primaryKey(st, p.columnNames()...)
		return
	}
	f := binary.EntityField{Precision: -1, Scale: -1}
	f.Name, _ = p.name()
	p.columnType(&f)
	for {
		switch {
		case p.takes("NOT"):
			p.needs("NULL")
			f.NotNull = true
		case p.takes("NULL"):
		case p.takes("PRIMARY"):
			p.needs("KEY")
			p.primaryKey(st, f.Name)
		case p.takes("DEFAULT"):
			f.Default = p.constant(f.Type)
		default:
			st.definitions = append(st.definitions, f)
			return
		}
	}
}

func (p *parser) primaryKey(st *Statement, names ...string) {
	if len(st.primary) > 0 {
		p.fail() // there is one primary key
	}
	st.primary = names
}

// columnTypes are the types of columns by the words of SQL.
var columnTypes = map[string]string{}

func init() {
	for name, words := range map[string]string{
		"java.lang.Boolean": "BOOL BOOLEAN BIT", "java.lang.Byte": "TINYINT", "java.lang.Short": "SMALLINT INT2",
		"java.lang.Integer": "INT INTEGER MEDIUMINT INT4 SIGNED", "java.lang.Long": "BIGINT INT8 LONG",
		"java.math.BigDecimal": "DECIMAL DEC NUMERIC NUMBER", "java.lang.Double": "DOUBLE FLOAT FLOAT8",
		"java.lang.Float": "REAL FLOAT4", "java.sql.Date": "DATE", "java.sql.Time": "TIME",
		"java.sql.Timestamp": "TIMESTAMP DATETIME SMALLDATETIME", "java.util.UUID": "UUID",
		"java.lang.String": "VARCHAR CHAR CHARACTER VARCHAR2 NVARCHAR NVARCHAR2 NCHAR LONGVARCHAR VARCHAR_IGNORECASE TEXT",
		"[B":               "BINARY VARBINARY LONGVARBINARY RAW BYTEA", "java.lang.Object": "OTHER OBJECT JAVA_OBJECT",
	} {
		for word := range strings.FieldsSeq(words) {
			columnTypes[word] = name
		}
	}
}

// columnType reads the type of a column.
func (p *parser) columnType(f *binary.EntityField) {
	word := p.tok.text
	if f.Type = columnTypes[word]; f.Type == "" || p.tok.kind != tokenWord {
		p.fail()
		return
	}
	p.next()
	switch word {
	case "DOUBLE":
		p.takes("PRECISION")
	case "CHARACTER", "CHAR":
		p.takes("VARYING")
	}
	sizes := []int{-1, -1}
	if p.isNext("(") {
		n := 0
		p.list(func() {
			if n++; n > len(sizes) {
				p.fail()
				return
			}
			sizes[n-1] = min(p.whole(), math.MaxInt32)
		})
	}
	// The size of other types, as in INT(11), has no meaning.
	switch f.Type {
	case "java.lang.String", "java.math.BigDecimal", "[B":
		f.Precision, f.Scale = int32(sizes[0]), int32(sizes[1])
	}
}

// constant reads a default value, and returns it as an object of a type.
func (p *parser) constant(typeName string) []byte {
	from := p.tok
	var v value
	switch l, ok := p.factor().(literal); {
	case ok:
		v = l.value
	default:
		p.tok = from
		p.fail()
		return nil
	}
	object, err := convert(v.object(), codeOf(typeName))
	if err != nil && p.err == nil {
		p.err = err
	}
	return object
}

// with reads the options of a table.
func (p *parser) with(st *Statement) {
	st.options = map[string]string{}
	if !p.takes("WITH") {
		return
	}
	for {
		if p.tok.kind != tokenQuoted && p.tok.kind != tokenText {
			p.fail()
			return
		}
		for option := range strings.SplitSeq(p.tok.text, ",") {
			name, v, ok := strings.Cut(option, "=")
			name, v = strings.ToUpper(strings.TrimSpace(name)), strings.TrimSpace(v)
			if name == "" && !ok {
				continue
			}
			if older := olderOptions[name]; older != "" {
				name = older
			}
			if !options[name] && p.err == nil {
				p.err = fmt.Errorf("Unsupported parameter: %s", name)
			}
			st.options[name] = v
		}
		if p.next(); !p.takes(",") {
			return
		}
	}
}

// options are the options of tables that are known. Those of tuning have no effect.
var options = map[string]bool{"TEMPLATE": true, "BACKUPS": true, "ATOMICITY": true, "CACHE_NAME": true, "KEY_TYPE": true,
	"VALUE_TYPE": true, "WRAP_KEY": true, "WRAP_VALUE": true, "AFFINITY_KEY": true, "CACHE_GROUP": true, "DATA_REGION": true,
	"WRITE_SYNCHRONIZATION_MODE": true, "PARALLELISM": true, "ENCRYPTED": true, "PK_INLINE_SIZE": true,
	"AFFINITY_INDEX_INLINE_SIZE": true}

// olderOptions are other names of options.
var olderOptions = map[string]string{"AFFINITYKEY": "AFFINITY_KEY", "CACHEGROUP": "CACHE_GROUP",
	"WRITESYNCHRONIZATIONMODE": "WRITE_SYNCHRONIZATION_MODE"}

// number returns an option that is a non-negative number; given is false without it.
func (st *Statement) number(option string) (n int, given bool, err error) {
	text, given := st.options[option]
	if !given {
		return 0, false, nil
	}
	u, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, true, fmt.Errorf("%s must be a number: %s", option, text)
	}
	return int(u), true, nil
}
