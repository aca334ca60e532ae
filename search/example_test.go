package search_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/search"
)

// Item is a document: each field with a tag is stored, and indexed if the tag has a type.
type Item struct {
	Title string       `search:"title,text,weight=2"`
	Tags  []string     `search:"tags,tag"`
	Price float64      `search:"price,numeric,sortable"`
	Place search.Point `search:"place,geo,omitempty"`
	Look  []float32    `search:"look,vector,hnsw,dim=2,metric=cosine"`
}

// openShop returns a new server and an index of items in it.
func openShop() (*atomredis.DB, *search.Index[Item]) {
	ctx := context.Background()
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	shop, err := search.Open[Item](ctx, db, "shop", search.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for id, item := range map[string]Item{
		"1": {Title: "red running shoes", Tags: []string{"sport", "shoes"}, Price: 79.5, Place: search.Point{Lon: 13.4, Lat: 52.5}, Look: []float32{1, 0}},
		"2": {Title: "blue shoe laces", Tags: []string{"shoes"}, Price: 4, Place: search.Point{Lon: 2.35, Lat: 48.85}, Look: []float32{0, 1}},
		"3": {Title: "a book about running", Tags: []string{"book", "sport"}, Price: 20, Look: []float32{0.6, 0.8}},
	} {
		if err := shop.Put(ctx, id, item); err != nil {
			log.Fatal(err)
		}
	}
	return db, shop
}

func Example() {
	ctx := context.Background()
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	type Item struct {
		Title string   `search:"title,text,weight=2"`
		Tags  []string `search:"tags,tag"`
		Price float64  `search:"price,numeric,sortable"`
	}
	shop, err := search.Open[Item](ctx, db, "shop", search.Options{})
	if err != nil {
		log.Fatal(err)
	}
	shop.Put(ctx, "1", Item{"red running shoes", []string{"sport", "shoes"}, 79.5})
	shop.Put(ctx, "2", Item{"blue shoe laces", []string{"shoes"}, 4})
	shop.Put(ctx, "3", Item{"a book about running", []string{"book", "sport"}, 20})

	q := search.Text("run").And(search.Range("price", 0, 50), search.Not(search.Tag("tags", "shoes")))
	for hit, err := range shop.Find(ctx, q, search.SortBy("price"), search.Limit(10)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hit.ID, hit.Value.Title, hit.Value.Price)
	}

	// The document is an ordinary hash.
	fmt.Println(db.Do(ctx, "HGET", "shop:1", "tags"))
	// Output:
	// 3 a book about running 20
	// "sport,shoes" <nil>
}

// With the option JSON the documents are JSON documents.
func ExampleOpen_json() {
	ctx := context.Background()
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	type Person struct {
		Name  string   `search:"name,text"`
		Langs []string `search:"langs,tag"`
		Born  int      `search:"born,numeric,omitempty"`
	}
	people, err := search.Open[Person](ctx, db, "people", search.Options{JSON: true, Prefix: "person:"})
	if err != nil {
		log.Fatal(err)
	}
	people.Put(ctx, "ada", Person{Name: "Ada", Langs: []string{"en", "fr"}, Born: 1815})
	people.Put(ctx, "emmy", Person{Name: "Emmy", Langs: []string{"de"}})
	hit, err := people.First(ctx, search.Tag("langs", "fr"))
	fmt.Println(hit.Value, err)
	fmt.Println(db.Do(ctx, "JSON.GET", "person:emmy"))
	// Output:
	// {Ada [en fr] 1815} <nil>
	// "{\"name\":\"Emmy\",\"langs\":[\"de\"]}" <nil>
}

// Open adds new fields of the struct to the index; other differences are errors.
func ExampleOpen_changed() {
	ctx := context.Background()
	db, _ := openShop()
	defer db.Close()
	type Item struct {
		Title string   `search:"title,text,weight=2"`
		Price string   `search:"price,text"`
		Sizes []string `search:"sizes,tag"`
	}
	_, err := search.Open[Item](ctx, db, "shop", search.Options{})
	fmt.Println(errors.Is(err, search.ErrDifferent))
	fmt.Println(err)
	// Output:
	// true
	// search: the index "shop" is different: field price: NUMERIC, not TEXT
}

func ExampleIndex_Find() {
	ctx := context.Background()
	db, shop := openShop()
	defer db.Close()
	for hit, err := range shop.Find(ctx, search.Text("shoes"), search.SortByDesc("price"), search.Highlight("title")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hit.ID, hit.Value.Price, hit.Highlights["title"])
	}
	// Output:
	// 1 79.5 red running <b>shoes</b>
	// 2 4 blue <b>shoe</b> laces
}

func ExampleKNN() {
	ctx := context.Background()
	db, shop := openShop()
	defer db.Close()
	q := search.KNN("look", 2, []float32{1, 0}, search.Tag("tags", "sport"))
	for hit, err := range shop.Find(ctx, q) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %.2f\n", hit.Value.Title, hit.Distance)
	}
	// Output:
	// red running shoes 0.00
	// a book about running 0.40
}

func ExampleNear() {
	ctx := context.Background()
	db, shop := openShop()
	defer db.Close()
	berlin := search.Point{Lon: 13.39, Lat: 52.51}
	n, err := shop.Count(ctx, search.Near("place", berlin, 5*search.Kilometer))
	fmt.Println(n, err)
	// Output: 1 <nil>
}

// Values that users enter are parameters, also in queries in the query language.
func ExampleRaw() {
	ctx := context.Background()
	db, shop := openShop()
	defer db.Close()
	most := 50
	hits, err := shop.Hits(ctx, search.Raw("@title:(red | book) @price:[-inf $most]", search.Params{"most": most}))
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range hits {
		fmt.Println(hit.Value.Title)
	}
	// Output: a book about running
}

func ExampleAggregate() {
	ctx := context.Background()
	db, shop := openShop()
	defer db.Close()
	type row struct {
		Tag   string  `search:"tag"`
		Items int     `search:"items"`
		Mean  float64 `search:"mean"`
	}
	rows := search.Aggregate[row](ctx, shop, search.All(),
		search.Load("tags"),
		search.Apply("split(@tags)", "tag"),
		search.GroupBy("tag").Count("items").Avg("price", "mean"),
		search.OrderBy(search.Desc("items"), search.Asc("tag")))
	for r, err := range rows {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Tag, r.Items, r.Mean)
	}
	// Output:
	// shoes 2 41.75
	// sport 2 49.75
	// book 1 20
}

// A query in a transaction finds the transaction's own documents.
func ExampleIndex_In() {
	ctx := context.Background()
	db, shop := openShop()
	defer db.Close()
	var left *search.Found[Item]
	err := db.Tx(ctx, func(tx *atomredis.Tx) error {
		items := shop.In(tx)
		items.Delete("3")
		var err error
		left, err = items.Find(search.Text("running"))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	for hit, err := range left.All() {
		fmt.Println(hit.Value.Title, err)
	}
	// Output: red running shoes <nil>
}

func ExampleIndex_Get() {
	ctx := context.Background()
	db, shop := openShop()
	defer db.Close()
	item, err := shop.Get(ctx, "2")
	fmt.Println(item.Title, err)
	_, err = shop.Get(ctx, "5")
	fmt.Println(errors.Is(err, search.ErrNotFound))
	// Output:
	// blue shoe laces <nil>
	// true
}
