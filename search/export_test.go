package search

import (
	"reflect"
)

// CheckTag reads the tag of a string, behind its name.
func CheckTag(rest string) error {
	_, err := schemaOf(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`search:"a,` + rest + `"`)}}), false)
	return err
}
