package search

import (
	"reflect"
)

// CheckTag reads the search tag of a string field, after the name.
func CheckTag(rest string) error {
	_, err := schemaOf(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`search:"a,` + rest + `"`)}}), false)
	return err
}
