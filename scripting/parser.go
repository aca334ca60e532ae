package scripting

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// The parser of Lua 5.1, by recursive descent. It refuses a source that Lua refuses, at the same token and in the same
// words, as soon as it gets there; it returns a syntax tree for the interpreter's compiler. Lua's limits bound how deep
// it recurses. Chains of operators, members and branches, which Lua does not limit, are read in loops.

// Lua's limits.
const (
	maxLevels   = 200 // of syntax
	maxLocals   = 200 // of a function
	maxUpvalues = 60  // of a function
)

// maxChain is the longest chain whose tree is as deep as the chain is long. The compiler recurses on it.
const maxChain = 16_000

// maxEffort bounds the compiler's searches: for each constant among those of its function, for each variable among the
// visible ones, and in each branch of a chain. It is about a second's work, and allows more than ten thousand constants
// in one function. Lua has a limit too, of 2^18 constants.
const maxEffort = 50_000_000

// parser reads one source.
type parser struct {
	lexer
	levels int
	effort int // how much of maxEffort was spent
	f      *functionState
}

// functionState is the state of the function that is being read.
type functionState struct {
	outer    *functionState
	line     int // the line it begins in; 0 for the whole source
	varargs  bool
	locals   []string // the visible ones
	upvalues map[string]bool
	loops    int // number of loops around the present place
	branches int // of chains around it, before the ones it is in
	// constants are those that the compiler will search linearly.
	constants map[string]int
}

// parse returns the syntax tree of a source.
func parse(source, name string) (stmts []ast.Stmt, err error) {
	p := &parser{lexer: lexer{name: name, source: source, line: 1}, f: &functionState{varargs: true}}
	defer func() {
		if e, ok := recover().(syntaxError); ok {
			stmts, err = nil, fmt.Errorf("%s", string(e))
		}
	}()
	p.next()
	stmts = p.chunk()
	p.check(tokEOF)
	return stmts, nil
}

// wrong ends the parsing at the present token.
func (p *parser) wrong(message string) { p.failNear(message, p.token.shown) }

// enter counts a level of syntax; p.levels-- must follow.
func (p *parser) enter() {
	if p.levels++; p.levels > maxLevels {
		p.fail("chunk has too many syntax levels")
	}
}

// longer checks the length of a chain.
func (p *parser) longer(n int) {
	if n > maxChain {
		p.fail("chunk has too many syntax levels")
	}
}

// spend counts the work of the compiler's searches.
func (p *parser) spend(n int, message string) {
	if p.effort += n; p.effort > maxEffort {
		p.fail(message)
	}
}

// constant records the use of a constant.
func (p *parser) constant(text string) {
	i, known := p.f.constants[text]
	if !known {
		if p.f.constants == nil {
			p.f.constants = map[string]int{}
		}
		i = len(p.f.constants)
		p.f.constants[text] = i
	}
	p.spend(i, "constant table overflow")
}

// limit checks a function's count of something.
func (f *functionState) limit(p *parser, n, most int, what string) {
	if n <= most {
		return
	}
	if f.line == 0 {
		p.fail(fmt.Sprintf("main function has more than %d %s", most, what))
	}
	p.fail(fmt.Sprintf("function at line %d has more than %d %s", f.line, most, what))
}

// test goes past a token if it is of that kind.
func (p *parser) test(kind tokenKind) bool {
	if p.token.kind != kind {
		return false
	}
	p.next()
	return true
}

// check requires a token of that kind.
func (p *parser) check(kind tokenKind) {
	if p.token.kind != kind {
		p.wrong("'" + kind.String() + "' expected")
	}
}

// skipOver is check, and goes past the token.
func (p *parser) skipOver(kind tokenKind) {
	p.check(kind)
	p.next()
}

// closing requires the token that closes what an opening token in some line began. It returns its line.
func (p *parser) closing(kind, opening tokenKind, line int) int {
	if p.token.kind != kind && line != p.line {
		p.wrong(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", kind, opening, line))
	}
	p.check(kind)
	ended := p.token.line
	p.next()
	return ended
}

// nameToken requires a name.
func (p *parser) nameToken() (name string, line int) {
	p.check(tokName)
	name, line = p.token.text, p.token.line
	p.next()
	return name, line
}

// declare adds a local variable, which becomes visible once the caller has extended f.locals over it.
func (p *parser) declare(names ...string) { p.f.locals = append(p.f.locals, names...) }

// mayDeclare checks that n more local variables are allowed.
func (p *parser) mayDeclare(n int) { p.f.limit(p, len(p.f.locals)+n, maxLocals, "local variables") }

// use records the use of a variable.
func (p *parser) use(name string) {
	for f := p.f; f != nil; f = f.outer {
		p.spend(f.branches+len(f.locals), "function or expression too complex")
		if !f.sees(name) {
			continue
		}
		for g := p.f; g != f; g = g.outer {
			if g.upvalues == nil {
				g.upvalues = map[string]bool{}
			}
			if !g.upvalues[name] {
				g.limit(p, len(g.upvalues)+1, maxUpvalues, "upvalues")
				g.upvalues[name] = true
			}
		}
		return
	}
	p.constant(name)
}

func (f *functionState) sees(name string) bool {
	for i := len(f.locals) - 1; i >= 0; i-- {
		if f.locals[i] == name {
			return true
		}
	}
	return false
}

// ends reports whether a token ends a block.
func ends(kind tokenKind) bool {
	switch kind {
	case tokElse, tokElseIf, tokEnd, tokUntil, tokEOF:
		return true
	}
	return false
}

// chunk reads statements up to the end of a block.
func (p *parser) chunk() []ast.Stmt {
	stmts := []ast.Stmt{}
	p.enter()
	for last := false; !last && !ends(p.token.kind); {
		var s ast.Stmt
		s, last = p.statement()
		stmts = append(stmts, s)
		p.test(';')
	}
	p.levels--
	return stmts
}

// block is chunk with a scope of its own.
func (p *parser) block() []ast.Stmt {
	n := len(p.f.locals)
	stmts := p.chunk()
	p.f.locals = p.f.locals[:n]
	return stmts
}

// loop is block for the body of a loop.
func (p *parser) loop() []ast.Stmt {
	p.f.loops++
	stmts := p.block()
	p.f.loops--
	return stmts
}

// at sets the lines of a node.
func at[T ast.PositionHolder](node T, line, last int) T {
	node.SetLine(line)
	node.SetLastLine(last)
	return node
}

// statement reads a statement; last says that it must be the last one of its block.
func (p *parser) statement() (s ast.Stmt, last bool) {
	line := p.token.line
	switch kind := p.token.kind; kind {
	case tokIf:
		return p.ifStatement(), false
	case tokWhile:
		p.next()
		s := &ast.WhileStmt{Condition: p.expr()}
		p.skipOver(tokDo)
		s.Stmts = p.loop()
		return at(s, line, p.closing(tokEnd, kind, line)), false
	case tokDo:
		p.next()
		s := &ast.DoBlockStmt{Stmts: p.block()}
		return at(s, line, p.closing(tokEnd, kind, line)), false
	case tokFor:
		return p.forStatement(), false
	case tokRepeat:
		p.next()
		n := len(p.f.locals)
		p.f.loops++
		s := &ast.RepeatStmt{Stmts: p.chunk()}
		p.f.loops--
		p.closing(tokUntil, kind, line)
		s.Condition = p.expr() // it sees the locals of the block
		p.f.locals = p.f.locals[:n]
		return at(s, line, s.Condition.Line()), false
	case tokFunction:
		return p.functionStatement(), false
	case tokLocal:
		p.next()
		if p.test(tokFunction) {
			return p.localFunction(line), false
		}
		return p.localStatement(line), false
	case tokReturn:
		p.next()
		s := &ast.ReturnStmt{}
		if !ends(p.token.kind) && p.token.kind != ';' {
			s.Exprs = p.exprs()
		}
		return at(s, line, 0), true
	case tokBreak:
		p.next()
		if p.f.loops == 0 {
			p.wrong("no loop to break")
		}
		return at(&ast.BreakStmt{}, line, 0), true
	}
	return p.exprStatement(), false
}

func (p *parser) ifStatement() ast.Stmt {
	line := p.token.line
	first := &ast.IfStmt{}
	s := first
	branches := p.f.branches
	for n := 1; ; n++ {
		p.longer(n)
		p.next()
		s.Condition = p.expr()
		p.skipOver(tokThen)
		s.Then = p.block()
		if p.token.kind != tokElseIf {
			break
		}
		p.f.branches++
		branch := at(&ast.IfStmt{}, p.token.line, 0)
		s.Else = []ast.Stmt{branch}
		s = branch
	}
	if p.test(tokElse) {
		s.Else = p.block()
	}
	p.f.branches = branches
	return at(first, line, p.closing(tokEnd, tokIf, line))
}

func (p *parser) forStatement() ast.Stmt {
	line := p.token.line
	n := len(p.f.locals)
	p.next()
	name, _ := p.nameToken()
	var s ast.Stmt
	switch p.token.kind {
	case '=':
		s = p.numericFor(name)
	case ',', tokIn:
		s = p.genericFor(name)
	default:
		p.wrong("'=' or 'in' expected")
	}
	p.f.locals = p.f.locals[:n]
	return at(s, line, p.closing(tokEnd, tokFor, line))
}

func (p *parser) numericFor(name string) ast.Stmt {
	p.mayDeclare(4)
	p.next()
	s := &ast.NumberForStmt{Name: name, Init: p.expr()}
	p.skipOver(',')
	s.Limit = p.expr()
	if p.test(',') {
		s.Step = p.expr()
	}
	p.declare("(for index)", "(for limit)", "(for step)")
	p.skipOver(tokDo)
	p.declare(name)
	s.Stmts = p.loop()
	return s
}

func (p *parser) genericFor(name string) ast.Stmt {
	s := &ast.GenericForStmt{Names: []string{name}}
	p.mayDeclare(4)
	for p.test(',') {
		name, _ := p.nameToken()
		p.mayDeclare(4 + len(s.Names))
		s.Names = append(s.Names, name)
	}
	p.skipOver(tokIn)
	s.Exprs = p.exprs()
	p.declare("(for generator)", "(for state)", "(for control)")
	p.skipOver(tokDo)
	p.declare(s.Names...)
	s.Stmts = p.loop()
	return s
}

func (p *parser) functionStatement() ast.Stmt {
	line := p.token.line
	p.next()
	name, at1 := p.nameToken()
	p.use(name)
	var target ast.Expr = at(&ast.IdentExpr{Value: name}, at1, 0)
	for n := 1; p.test('.'); n++ {
		p.longer(n)
		member, line := p.nameToken()
		p.constant(member)
		key := at(&ast.StringExpr{Value: member}, line, 0)
		target = at(&ast.AttrGetExpr{Object: target, Key: key}, line, 0)
	}
	s := &ast.FuncDefStmt{Name: &ast.FuncName{Func: target}}
	if p.test(':') {
		method, _ := p.nameToken()
		p.constant(method)
		s.Name = &ast.FuncName{Receiver: target, Method: method}
	}
	s.Func = p.function(line, s.Name.Receiver != nil)
	return at(s, line, s.Func.LastLine())
}

func (p *parser) localFunction(line int) ast.Stmt {
	name, _ := p.nameToken()
	p.mayDeclare(1)
	p.declare(name) // it sees itself
	fn := p.function(p.line, false)
	return at(&ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{fn}}, line, fn.LastLine())
}

func (p *parser) localStatement(line int) ast.Stmt {
	s := &ast.LocalAssignStmt{Exprs: []ast.Expr{}}
	for {
		name, _ := p.nameToken()
		p.mayDeclare(len(s.Names) + 1)
		s.Names = append(s.Names, name)
		if !p.test(',') {
			break
		}
	}
	if p.test('=') {
		s.Exprs = p.exprs()
	}
	p.declare(s.Names...)
	return at(s, line, 0)
}

// exprStatement reads a call or an assignment.
func (p *parser) exprStatement() ast.Stmt {
	e, target := p.primary()
	if call, ok := e.(*ast.FuncCallExpr); ok && !call.AdjustRet {
		return at(&ast.FuncCallStmt{Expr: e}, e.Line(), 0)
	}
	s := &ast.AssignStmt{}
	for {
		if !target {
			p.wrong("syntax error")
		}
		s.Lhs = append(s.Lhs, e)
		if !p.test(',') {
			break
		}
		e, target = p.primary()
		p.f.limit(p, len(s.Lhs), maxLevels-p.levels, "variables in assignment")
	}
	p.skipOver('=')
	s.Rhs = p.exprs()
	return at(s, s.Lhs[0].Line(), 0)
}

func (p *parser) exprs() []ast.Expr {
	list := []ast.Expr{p.expr()}
	for p.test(',') {
		list = append(list, p.expr())
	}
	return list
}

// function reads a function after its name. line is where it begins.
func (p *parser) function(line int, method bool) *ast.FunctionExpr {
	begun := p.token.line
	opened := p.line
	p.f = &functionState{outer: p.f, line: opened}
	p.skipOver('(')
	fn := &ast.FunctionExpr{ParList: &ast.ParList{Names: []string{}}}
	if method {
		p.declare("self")
	}
	for p.token.kind != ')' && !p.f.varargs {
		switch p.token.kind {
		case tokName:
			p.mayDeclare(1)
			p.declare(p.token.text)
			fn.ParList.Names = append(fn.ParList.Names, p.token.text)
		case tokDots:
			p.mayDeclare(1)
			p.f.varargs, fn.ParList.HasVargs = true, true
		default:
			p.wrong("<name> or '...' expected")
		}
		p.next()
		if fn.ParList.HasVargs || !p.test(',') {
			break
		}
		if p.token.kind == ')' {
			p.wrong("<name> or '...' expected")
		}
	}
	if fn.ParList.HasVargs {
		p.declare("arg")
	}
	p.skipOver(')')
	fn.Stmts = p.chunk()
	ended := p.closing(tokEnd, tokFunction, line)
	p.f = p.f.outer
	return at(fn, begun, ended)
}

// binds returns how tightly an operator binds its left and right operands.
func binds(kind tokenKind) (left, right int) {
	switch kind {
	case '+', '-':
		return 6, 6
	case '*', '/', '%':
		return 7, 7
	case '^':
		return 10, 9
	case tokConcat:
		return 5, 4
	case tokEqual, tokNotEqual, '<', tokLess, '>', tokGreater:
		return 3, 3
	case tokAnd:
		return 2, 2
	case tokOr:
		return 1, 1
	}
	return 0, 0
}

// unaryBinds is how tightly operators with one operand bind it.
const unaryBinds = 8

func (p *parser) expr() ast.Expr { return p.operation(0) }

// maxFolded is the most operators of a chain that the compiler sees at once. At each operator of a sum the compiler
// looks for constants in all of the sum; behind "true and" it does not look.
const maxFolded = 50

// operation reads an expression whose operators bind more tightly than limit.
func (p *parser) operation(limit int) ast.Expr {
	p.enter()
	e := p.operand()
	for n := 1; ; n++ {
		kind := p.token.kind
		left, right := binds(kind)
		if left <= limit {
			break
		}
		p.longer(n)
		p.next()
		line := e.Line()
		e = at(join(kind, e, p.operation(right)), line, 0)
		if _, ok := e.(*ast.ArithmeticOpExpr); ok && n%maxFolded == 0 {
			e = at(&ast.LogicalOpExpr{Operator: "and", Lhs: at(&ast.TrueExpr{}, line, 0), Rhs: e}, line, 0)
		}
	}
	p.levels--
	return e
}

// join makes an expression from an operator and its operands.
func join(kind tokenKind, l, r ast.Expr) ast.Expr {
	switch kind {
	case tokAnd, tokOr:
		return &ast.LogicalOpExpr{Operator: kind.String(), Lhs: l, Rhs: r}
	case tokConcat:
		return &ast.StringConcatOpExpr{Lhs: l, Rhs: r}
	case tokEqual, tokNotEqual, '<', tokLess, '>', tokGreater:
		return &ast.RelationalOpExpr{Operator: kind.String(), Lhs: l, Rhs: r}
	}
	return &ast.ArithmeticOpExpr{Operator: kind.String(), Lhs: l, Rhs: r}
}

// operand reads an expression without binary operators.
func (p *parser) operand() ast.Expr {
	kind, line := p.token.kind, p.token.line
	var e ast.Expr
	switch kind {
	case '-', '#', tokNot:
		p.next()
		of := p.operation(unaryBinds)
		switch kind {
		case '-':
			e = &ast.UnaryMinusOpExpr{Expr: of}
		case '#':
			e = &ast.UnaryLenOpExpr{Expr: of}
		default:
			e = &ast.UnaryNotOpExpr{Expr: of}
		}
		return at(e, of.Line(), 0)
	case tokNumber:
		p.constant(p.token.text)
		e = &ast.NumberExpr{Value: p.token.text}
	case tokString:
		p.constant(p.token.text)
		e = &ast.StringExpr{Value: p.token.text}
	case tokNil:
		e = &ast.NilExpr{}
	case tokTrue:
		e = &ast.TrueExpr{}
	case tokFalse:
		e = &ast.FalseExpr{}
	case tokDots:
		if !p.f.varargs {
			p.wrong("cannot use '...' outside a vararg function")
		}
		e = &ast.Comma3Expr{}
	case '{':
		return p.table()
	case tokFunction:
		p.next()
		fn := p.function(line, false)
		return at(fn, line, fn.LastLine())
	default:
		e, _ := p.primary()
		return e
	}
	p.next()
	return at(e, line, 0)
}

// primary reads a variable, a call, a member, or an expression in parentheses; target reports whether it can be
// assigned to.
func (p *parser) primary() (e ast.Expr, target bool) {
	line := p.token.line
	switch p.token.kind {
	case '(':
		p.next()
		e = p.expr()
		p.closing(')', '(', line)
		switch e := e.(type) {
		case *ast.FuncCallExpr:
			e.AdjustRet = true
		case *ast.Comma3Expr:
			e.AdjustRet = true
			e.SetLine(line)
		default:
			e.SetLine(line)
		}
	case tokName:
		p.use(p.token.text)
		e, target = at(&ast.IdentExpr{Value: p.token.text}, line, 0), true
		p.next()
	default:
		p.wrong("unexpected symbol")
	}
	for n := 1; ; n++ {
		p.longer(n)
		of := e.Line()
		switch p.token.kind {
		case '.':
			p.next()
			name, line := p.nameToken()
			p.constant(name)
			e, target = at(&ast.AttrGetExpr{Object: e, Key: at(&ast.StringExpr{Value: name}, line, 0)}, of, 0), true
		case '[':
			p.next()
			key := p.expr()
			p.skipOver(']')
			e, target = at(&ast.AttrGetExpr{Object: e, Key: key}, of, 0), true
		case ':':
			p.next()
			name, _ := p.nameToken()
			p.constant(name)
			e, target = at(&ast.FuncCallExpr{Method: name, Receiver: e, Args: p.arguments()}, of, 0), false
		case '(', tokString, '{':
			e, target = at(&ast.FuncCallExpr{Func: e, Args: p.arguments()}, of, 0), false
		default:
			return e, target
		}
	}
}

// arguments reads the arguments of a call.
func (p *parser) arguments() []ast.Expr {
	switch line := p.line; p.token.kind {
	case tokString:
		p.constant(p.token.text)
		s := at(&ast.StringExpr{Value: p.token.text}, p.token.line, 0)
		p.next()
		return []ast.Expr{s}
	case '{':
		return []ast.Expr{p.table()}
	case '(':
		if line != p.last {
			p.wrong("ambiguous syntax (function call x new statement)")
		}
		p.next()
		args := []ast.Expr{}
		if p.token.kind != ')' {
			args = p.exprs()
		}
		p.closing(')', '(', line)
		return args
	}
	p.wrong("function arguments expected")
	return nil
}

// table reads a table constructor.
func (p *parser) table() ast.Expr {
	line := p.token.line
	e := at(&ast.TableExpr{Fields: []*ast.Field{}}, line, 0)
	p.skipOver('{')
	for p.token.kind != '}' {
		f := &ast.Field{}
		switch {
		case p.token.kind == tokName && p.peek() == '=':
			name, line := p.nameToken()
			p.constant(name)
			f.Key = at(&ast.StringExpr{Value: name}, line, 0)
			p.skipOver('=')
		case p.token.kind == '[':
			p.next()
			f.Key = p.expr()
			p.skipOver(']')
			p.skipOver('=')
		}
		f.Value = p.expr()
		e.Fields = append(e.Fields, f)
		if !p.test(',') && !p.test(';') {
			break
		}
	}
	p.closing('}', '{', line)
	return e
}
