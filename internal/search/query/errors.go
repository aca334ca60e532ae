package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Error is an error of the query engine.
type Error struct {
	Code Code
	Text string
}

// Error implements error. It returns what clients get.
func (e *Error) Error() string { return e.Code.With(e.Text) }

// Code is the kind of an error: the first word of its text, as in Redis from 8.8 on.
type Code string

// With returns a text with the code before it.
func (c Code) With(text string) string {
	if c == NoCode {
		return text
	}
	return string(c) + " " + text
}

// The codes of all errors of the query engine.
const (
	NoCode             Code = "" // for the errors that have none in Redis
	AddArguments       Code = "SEARCH_ADD_ARGS"
	AliasConflict      Code = "SEARCH_ALIAS_CONFLICT"
	BadArguments       Code = "SEARCH_PARSE_ARGS"
	BadAttribute       Code = "SEARCH_ATTR_BAD"
	BadBatchSize       Code = "SEARCH_ADHOC_BATCH_SIZE_IRRELEVANT"
	BadCoordinates     Code = "SEARCH_GEO_COORDINATES_INVALID"
	BadEffort          Code = "SEARCH_ADHOC_EF_RUNTIME_IRRELEVANT"
	BadExpression      Code = "SEARCH_EXPR"
	BadJSON            Code = "SEARCH_JSON_TYPE_INVALID"
	BadOption          Code = "SEARCH_OPTION_INVALID"
	BadOrder           Code = "SEARCH_ORDER_OPTION_BAD"
	BadPath            Code = "SEARCH_PATH_BAD"
	BadPolicy          Code = "SEARCH_HYBRID_POLICY_BAD"
	BadValue           Code = "SEARCH_VALUE_BAD"
	BadVectorLength    Code = "SEARCH_VECTOR_LEN_BAD"
	BadVectorSize      Code = "SEARCH_VECTOR_BLOB_SIZE_MISMATCH"
	DocumentExists     Code = "SEARCH_DOCUMENT_EXISTS"
	Duplicate          Code = "SEARCH_FIELD_DUP"
	DuplicateParameter Code = "SEARCH_PARAM_DUP"
	Generic            Code = "SEARCH_GENERIC"
	IndexExists        Code = "SEARCH_INDEX_EXISTS"
	Invalid            Code = "SEARCH_QUERY_BAD"
	LimitExceeded      Code = "SEARCH_LIMIT_OVER"
	NoDocument         Code = "SEARCH_DOC_NOT_FOUND"
	NoIndex            Code = "SEARCH_INDEX_NOT_FOUND"
	NoParameter        Code = "SEARCH_PARAM_NOT_FOUND"
	NoProperty         Code = "SEARCH_PROP_NOT_FOUND"
	NoReducer          Code = "SEARCH_REDUCER_NOT_FOUND"
	NoValue            Code = "SEARCH_VALUE_NOT_FOUND"
	NotHybrid          Code = "SEARCH_HYBRID_ATTR_NON_HYBRID"
	NotNumeric         Code = "SEARCH_NUMERIC_VALUE_INVALID"
	NotRange           Code = "SEARCH_RANGE_ATTR_NON_RANGE"
	NotSupported       Code = "SEARCH_OPTION_BAD"
	Syntax             Code = "SEARCH_SYNTAX"
	Timeout            Code = "SEARCH_TIMEOUT"
	UnknownArgument    Code = "SEARCH_ARG_UNRECOGNIZED"
	VectorNotAllowed   Code = "SEARCH_VECTOR_NOT_ALLOWED"
	WeightNotAllowed   Code = "SEARCH_WEIGHT_NOT_ALLOWED"
)

// errorf returns an error.
func errorf(code Code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// BadPlace returns the error for a longitude or latitude that is no number; text is all of it.
func BadPlace(text string) *Error {
	text = strings.TrimSpace(text)
	if f, err := strconv.ParseFloat(text, 64); err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return errorf(BadArguments, "Geo coordinates must be finite")
	}
	reason := "invalid float literal"
	if text == "" {
		reason = "cannot parse float from empty string"
	}
	return errorf(BadArguments, "Invalid geo string %q: %s", text, reason)
}
