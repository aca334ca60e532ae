package scripting

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// maxSyntaxDepth bounds the depth of the syntax tree, since the compiler recurses on it.
const maxSyntaxDepth = 2 * maxChain

// concatName is the global that the compiler uses instead of the operator "..", which would print numbers differently
// from Lua 5.1. No script can write this name.
const concatName = "(concat)"

// concatListName is the global for chains of ".." too long for each operand to have a register.
const concatListName = "(concat list)"

// globalsName is the global that stands for the table of globals as scripts see it. No script can write this name
// either.
const globalsName = "(globals)"

// numberName is the global of the function that turns strings into numbers for the bounds of loops.
const numberName = "(number)"

// callName is the global of redis.call for calls whose result is not used.
const callName = "(redis.call)"

// compile compiles a source. name is its name in messages. The error is a message in the form of Lua's own.
func compile(source, name string) (c *chunk, err error) {
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, fmt.Errorf("%s: %v", name, p)
		}
	}()
	if len(source) > maxSource {
		return nil, fmt.Errorf("%s:1: chunk is longer than %d bytes", name, maxSource)
	}
	stmts, err := parse(source, name)
	if err != nil {
		return nil, err
	}
	r := rewriter{names: &names{}}
	stmts = r.chunk(stmts)
	if r.tooDeep {
		return nil, fmt.Errorf("%s:1: chunk has too many syntax levels", name)
	}
	proto, err := lua.Compile(stmts, name)
	if err != nil {
		var e *lua.CompileError
		if errors.As(err, &e) {
			return nil, errors.New(compileMessage(name, e))
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	// Each call would create the table of the variable "arg", which a chunk, unlike a function, cannot see.
	proto.IsVarArg &^= lua.VarArgNeedsArg
	return &chunk{proto: proto, names: r.names}, nil
}

// compileMessage gives an error of the compiler Lua's form. The compiler only reports limits of one function, and knows
// the line where the function begins.
func compileMessage(name string, e *lua.CompileError) string {
	message := e.Message
	if message == "too many local variables" || strings.HasPrefix(message, "register overflow") {
		message = "function or expression too complex"
	}
	return fmt.Sprintf("%s:%d: %s", name, max(e.Line, 1), message)
}

// rewriter walks over a syntax tree: it replaces concatenations, and records the names of operands of expressions.
type rewriter struct {
	names   *names
	scopes  []scope
	level   int // number of functions around the present place
	depth   int
	tooDeep bool
	concats bool // there is a concatenation
}

// scope are the local variables of a block.
type scope struct {
	level int
	vars  map[string]bool
}

func (r *rewriter) chunk(stmts []ast.Stmt) []ast.Stmt {
	r.block(stmts)
	if !r.concats || r.tooDeep {
		return stmts
	}
	// Functions reach the concatenation through a local variable, which is faster than a global.
	get := &ast.IdentExpr{Value: concatName}
	get.SetLine(1)
	get.SetLastLine(1)
	local := &ast.LocalAssignStmt{Names: []string{concatName}, Exprs: []ast.Expr{get}}
	local.SetLine(1)
	local.SetLastLine(1)
	return append([]ast.Stmt{local}, stmts...)
}

func (r *rewriter) block(stmts []ast.Stmt, vars ...string) {
	r.open(vars...)
	r.stmts(stmts)
	r.close()
}

func (r *rewriter) open(vars ...string) {
	s := scope{level: r.level, vars: map[string]bool{}}
	for _, v := range vars {
		s.vars[v] = true
	}
	r.scopes = append(r.scopes, s)
}

func (r *rewriter) close() { r.scopes = r.scopes[:len(r.scopes)-1] }

func (r *rewriter) declare(vars ...string) {
	for _, v := range vars {
		r.scopes[len(r.scopes)-1].vars[v] = true
	}
}

// enter counts a level of syntax and reports whether the walk may enter it; leave must follow.
func (r *rewriter) enter() bool {
	r.depth++
	if r.depth > maxSyntaxDepth {
		r.tooDeep = true
	}
	return !r.tooDeep
}

func (r *rewriter) leave() { r.depth-- }

func (r *rewriter) stmts(stmts []ast.Stmt) {
	if r.enter() {
		for i, s := range stmts {
			if a, ok := s.(*ast.AssignStmt); ok {
				stmts[i] = r.assignment(a)
			} else {
				r.stmt(s)
			}
		}
	}
	r.leave()
}

func (r *rewriter) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		if fn, ok := oneFunction(s.Exprs); ok { // "local function f" sees itself
			r.declare(s.Names...)
			r.expr(fn)
			return
		}
		r.exprs(s.Exprs)
		r.declare(s.Names...)
	case *ast.FuncCallStmt:
		s.Expr = r.expr(s.Expr)
		if call, ok := s.Expr.(*ast.FuncCallExpr); ok && call.Receiver == nil {
			if fn, ok := call.Func.(*ast.IdentExpr); ok && fn.Value == memberName("redis", "call") {
				fn.Value = callName
			}
		}
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		r.open()
		r.stmts(s.Stmts)
		s.Condition = r.expr(s.Condition)
		r.close()
	case *ast.IfStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit = number(r.expr(s.Init)), number(r.expr(s.Limit))
		if s.Step != nil {
			s.Step = number(r.expr(s.Step))
		}
		r.block(s.Stmts, s.Name)
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		r.names.add(s.Line(), operand{kind: calling})
		r.block(s.Stmts, s.Names...)
	case *ast.FuncDefStmt:
		if s.Name.Func != nil {
			s.Name.Func = r.target(s.Name.Func)
		}
		if s.Name.Receiver != nil {
			s.Name.Receiver = r.expr(s.Name.Receiver)
			r.function(s.Func, "self")
			return
		}
		r.function(s.Func)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	}
}

// assignment walks over an assignment and returns its replacement. The interpreter's compiler writes a value straight
// to a local variable before it has evaluated those after it. So an assignment to several variables, one of them local,
// becomes a block that evaluates everything first, and then assigns from right to left as Lua does.
func (r *rewriter) assignment(s *ast.AssignStmt) ast.Stmt {
	locals := false
	for _, e := range s.Lhs {
		id, ok := e.(*ast.IdentExpr)
		locals = locals || ok && r.isLocal(id.Value)
	}
	r.exprs(s.Rhs)
	for i, e := range s.Lhs {
		s.Lhs[i] = r.target(e)
	}
	if len(s.Lhs) == 1 || !locals {
		return s
	}
	block := &ast.DoBlockStmt{}
	add := func(stmt ast.Stmt) {
		stmt.SetLine(s.Line())
		stmt.SetLastLine(s.LastLine())
		block.Stmts = append(block.Stmts, stmt)
	}
	hidden := 0
	keep := func(e ast.Expr) ast.Expr {
		switch e.(type) {
		case *ast.StringExpr, *ast.NumberExpr:
			return e
		}
		hidden++
		name := "(" + strconv.Itoa(hidden) + ")"
		add(&ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{single(e)}})
		return ident(name, e)
	}
	for _, e := range s.Lhs {
		if get, ok := e.(*ast.AttrGetExpr); ok {
			get.Object, get.Key = keep(get.Object), keep(get.Key)
		}
	}
	values := make([]string, len(s.Lhs))
	for i := range values {
		hidden++
		values[i] = "(" + strconv.Itoa(hidden) + ")"
	}
	add(&ast.LocalAssignStmt{Names: values, Exprs: s.Rhs})
	for i := len(s.Lhs) - 1; i >= 0; i-- {
		add(&ast.AssignStmt{Lhs: s.Lhs[i : i+1], Rhs: []ast.Expr{ident(values[i], s.Lhs[i])}})
	}
	block.SetLine(s.Line())
	block.SetLastLine(s.LastLine())
	return block
}

// number converts an expression of a loop's control to a number if it is a string that contains one, which the
// interpreter would refuse.
func number(e ast.Expr) ast.Expr {
	switch e.(type) {
	case *ast.NumberExpr, *ast.ArithmeticOpExpr, *ast.UnaryMinusOpExpr, *ast.UnaryLenOpExpr:
		return e // numbers, or an error at run time
	}
	call := &ast.FuncCallExpr{Func: ident(numberName, e), Args: []ast.Expr{single(e)}, AdjustRet: true}
	call.SetLine(e.Line())
	call.SetLastLine(e.LastLine())
	return call
}

func oneFunction(exprs []ast.Expr) (*ast.FunctionExpr, bool) {
	if len(exprs) != 1 {
		return nil, false
	}
	fn, ok := exprs[0].(*ast.FunctionExpr)
	return fn, ok
}

func (r *rewriter) function(fn *ast.FunctionExpr, vars ...string) {
	r.level++
	if fn.ParList != nil {
		vars = append(vars, fn.ParList.Names...)
	}
	r.block(fn.Stmts, vars...)
	r.level--
}

func (r *rewriter) exprs(list []ast.Expr) {
	for i, e := range list {
		list[i] = r.expr(e)
	}
}

// target is expr for the target of an assignment. Functions run with an unprotected table of globals, which is faster
// to read, so they must only write to the protected one.
func (r *rewriter) target(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if r.isLocal(e.Value) {
			return e
		}
		get := &ast.AttrGetExpr{Object: ident(globalsName, e), Key: &ast.StringExpr{Value: e.Value}}
		get.SetLine(e.Line())
		get.SetLastLine(e.LastLine())
		get.Key.SetLine(e.Line())
		return get
	case *ast.AttrGetExpr:
		if r.enter() {
			r.index(e)
		}
		r.leave()
	}
	return e
}

// ident returns a use of a global to replace an expression.
func ident(name string, at ast.Expr) *ast.IdentExpr {
	e := &ast.IdentExpr{Value: name}
	e.SetLine(at.Line())
	e.SetLastLine(at.LastLine())
	return e
}

// isLocal reports whether a name is a local variable of this function or of one around it.
func (r *rewriter) isLocal(name string) bool {
	for i := len(r.scopes) - 1; i >= 0; i-- {
		if r.scopes[i].vars[name] {
			return true
		}
	}
	return false
}

// expr walks over an expression and returns its replacement.
func (r *rewriter) expr(e ast.Expr) ast.Expr {
	if r.enter() {
		e = r.rewrite(e)
	}
	r.leave()
	return e
}

func (r *rewriter) rewrite(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		if name, ok := r.libraryMember(e); ok {
			return ident(name, e)
		}
		r.index(e)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				f.Key = r.expr(f.Key)
			}
			f.Value = r.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		if e.Receiver != nil {
			r.names.add(e.Line(), operand{kind: indexing, key: e.Method, name: r.nameOf(e.Receiver)})
			r.names.add(e.Line(), operand{kind: calling, name: "method '" + e.Method + "'"})
			e.Receiver = r.expr(e.Receiver)
		} else {
			r.names.add(e.Line(), operand{kind: calling, name: r.nameOf(e.Func)})
			e.Func = r.expr(e.Func)
		}
		r.exprs(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	case *ast.ArithmeticOpExpr:
		r.names.add(e.Line(), operand{kind: arithmetic, key: e.Operator, name: r.nameOf(e.Lhs), other: r.nameOf(e.Rhs)})
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		r.names.add(e.Line(), operand{kind: negating, key: constantType(e.Expr), name: r.nameOf(e.Expr)})
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		r.names.add(e.Line(), operand{kind: measuring, key: constantType(e.Expr), name: r.nameOf(e.Expr)})
		e.Expr = r.expr(e.Expr)
	case *ast.FunctionExpr:
		r.function(e)
	}
	return e
}

// index walks over an index expression.
func (r *rewriter) index(e *ast.AttrGetExpr) {
	key := ""
	switch k := e.Key.(type) {
	case *ast.StringExpr:
		key = k.Value
	case *ast.NumberExpr:
		key = k.Value
	}
	r.names.add(e.Line(), operand{kind: indexing, key: key, name: r.nameOf(e.Object)})
	e.Object, e.Key = r.expr(e.Object), r.expr(e.Key)
}

// libraryMember returns the name of the global that replaces an index expression, if it reads a member of a library.
func (r *rewriter) libraryMember(e *ast.AttrGetExpr) (name string, ok bool) {
	library, ok := e.Object.(*ast.IdentExpr)
	if !ok || r.isLocal(library.Value) {
		return "", false
	}
	key, ok := e.Key.(*ast.StringExpr)
	if !ok {
		return "", false
	}
	name = memberName(library.Value, key.Value)
	return name, libraryMembers()[name]
}

// memberName is the global that holds a member of a library: libraries do not change, so their members can be looked up
// in one step instead of two. No script can write this name.
func memberName(library, key string) string { return library + "." + key }

// libraryMembers returns the names of all such globals.
var libraryMembers func() map[string]bool

func init() {
	libraryMembers = sync.OnceValue(func() map[string]bool {
		all := map[string]bool{}
		newVM(&Options{}).environment.ForEach(func(k, _ lua.LValue) {
			if name := k.String(); strings.Contains(name, ".") {
				all[name] = true
			}
		})
		return all
	})
}

// concat replaces a chain of concatenations by one call.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	call := &ast.FuncCallExpr{AdjustRet: true}
	call.SetLine(e.Line())
	call.SetLastLine(e.LastLine())
	var labels []string
	last := ast.Expr(e)
	for {
		pair, ok := last.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		labels = append(labels, r.nameOf(pair.Lhs))
		call.Args = append(call.Args, single(r.expr(pair.Lhs)))
		last = pair.Rhs
	}
	labels = append(labels, r.nameOf(last))
	call.Args = append(call.Args, single(r.expr(last)))
	for i, label := range labels {
		r.names.add(e.Line(), operand{kind: concatenating, key: concatKey(i+1, len(labels)), name: label})
	}
	if len(call.Args) > maxConcat {
		list := &ast.TableExpr{}
		for _, arg := range call.Args {
			list.Fields = append(list.Fields, &ast.Field{Value: arg})
		}
		count := &ast.NumberExpr{Value: strconv.Itoa(len(call.Args))}
		call.Func, call.Args = ident(concatListName, e), []ast.Expr{count, list}
		for _, n := range []ast.Expr{list, count} {
			n.SetLine(e.Line())
			n.SetLastLine(e.LastLine())
		}
		return call
	}
	call.Func = ident(concatName, e)
	r.concats = true
	return call
}

// maxConcat is the most operands of one chain of concatenations that are passed as arguments; each needs a register.
const maxConcat = 50

// single makes an expression return exactly one value.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

func concatKey(at, count int) string { return strconv.Itoa(at) + " of " + strconv.Itoa(count) }

// nameOf returns the name of an expression in messages, such as "local 'x'"; empty if it has no name.
func (r *rewriter) nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IdentExpr:
		for i := len(r.scopes) - 1; i >= 0; i-- {
			s := r.scopes[i]
			if s.vars[e.Value] {
				if s.level == r.level {
					return "local '" + e.Value + "'"
				}
				return "upvalue '" + e.Value + "'"
			}
		}
		return "global '" + e.Value + "'"
	case *ast.AttrGetExpr:
		if s, ok := e.Key.(*ast.StringExpr); ok {
			return "field '" + s.Value + "'"
		}
		return "field '?'"
	}
	return ""
}

// constantType returns the type of a literal; empty for other expressions.
func constantType(e ast.Expr) string {
	switch e.(type) {
	case *ast.NumberExpr:
		return "number"
	case *ast.StringExpr:
		return "string"
	case *ast.TrueExpr, *ast.FalseExpr:
		return "boolean"
	case *ast.TableExpr:
		return "table"
	case *ast.FunctionExpr:
		return "function"
	}
	return ""
}
