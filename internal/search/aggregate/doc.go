// Package aggregate has the pipeline of FT.AGGREGATE: rows pass through LOAD, GROUPBY, APPLY, FILTER, SORTBY and LIMIT in the
// order in which they are written. It knows no index: a Source yields the rows of the documents that a query found, and a Loader
// reads their fields.
//
// A command passes through the rooms in this order:
//
//   - parse.go reads the arguments into a Plan, a list of steps (step.go), with the errors that need no index.
//   - build.go turns a plan into a Pipeline: it resolves names to slots (scope.go), parses expressions and reducers, and says what
//     the source must put in rows (Inputs).
//   - pipeline.go runs it. Each step pulls rows from the one before it (load.go, eval.go, group.go, arrange.go), so a cursor pauses
//     by not asking for the next row. Interrupt is asked while rows come and while groups grow.
//   - reducers.go and the files beside it have the reducers of groups.
//   - shard.go divides a pipeline between the shards of a cluster and the server that was asked.
//
// # Names
//
// A name is visible to APPLY and FILTER if it was loaded, made by an earlier step, or belongs to a SORTABLE field. SORTBY, GROUPBY and
// reducers also load the other fields of the schema. A GROUPBY begins a new set of names: its keys and the results of
// its reducers. A row has a slot for each name. A value from the sort values is in the normalized form, unless a LOAD of its name
// has replaced it by the original one.
//
// # Limits
//
// Options limits groups and the memory of groups and sorted rows. Sorting keeps only the rows that can be in the result.
package aggregate
