package index

import (
	"github.com/atomredis/atomredis/engine/search/shapes"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
)

// shapeField is the shapes of a GEOSHAPE field, as a plan sees them.
type shapeField struct {
	*shapes.Index
	coordinates shapes.Coordinates
}

func newShapeField(f *schema.Field) *shapeField {
	c := coordinatesOf(f)
	return &shapeField{shapes.New(c), c}
}

func coordinatesOf(f *schema.Field) shapes.Coordinates {
	if f.Flat {
		return shapes.Flat
	}
	return shapes.Spherical
}

// parseShape reads the shape of a document.
func parseShape(f *schema.Field, wkt []byte) (s shapes.Shape, failure string) {
	s, err := shapes.Parse(coordinatesOf(f), string(wkt))
	if err != nil {
		return s, query.BadValue.With("Error indexing geoshape: " + err.Error())
	}
	return s, ""
}

// relations are the relations of package shapes by those of queries.
var relations = map[query.Predicate]shapes.Relation{query.Contains: shapes.Contains, query.Within: shapes.Within,
	query.Disjoint: shapes.Disjoint, query.Intersects: shapes.Intersects}

// Find implements plan.Shapes.
func (x *shapeField) Find(p query.Predicate, wkt string) ([]uint64, error) {
	s, err := shapes.Parse(x.coordinates, wkt)
	if err != nil {
		return nil, &query.Error{Code: query.BadValue, Text: "Error querying geoshape index: " + err.Error()}
	}
	return x.Index.Find(relations[p], s), nil
}
