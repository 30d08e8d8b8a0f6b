package files

import (
	"encoding/json"

	"github.com/ecotone-dev/ecotone/host/boundary"
)

// Bounds of what one call delivers.
const (
	MaxReadBytes = 256 << 10 // of content, and of a listing
	MaxItems     = 1000
)

// page collects the items of a listing up to a number and a size.
type page struct {
	limit int
	body  []byte
	count int
	more  bool
}

// newPage makes a page of at most limit items; limits below 1 and above [MaxItems] are
// [MaxItems].
func newPage(limit int) *page {
	if limit < 1 || limit > MaxItems {
		limit = MaxItems
	}
	return &page{limit: limit, body: []byte{'['}}
}

// full reports whether no other item fits, and notes that there is one.
func (p *page) full() bool {
	if p.count >= p.limit {
		p.more = true
	}
	return p.more
}

// add appends an item; false is that it does not fit.
func (p *page) add(v any) bool {
	b, err := json.Marshal(v)
	if err != nil {
		panic("files: an item that does not marshal: " + err.Error())
	}
	if p.full() || len(p.body)+len(b)+2 > MaxReadBytes {
		p.more = true
		return false
	}
	if p.count > 0 {
		p.body = append(p.body, ',')
	}
	p.body = append(p.body, b...)
	p.count++
	return true
}

func (p *page) result(target string) boundary.Result {
	return boundary.Result{
		Body: append(p.body, ']'),
		Meta: meta(struct {
			More  bool `json:"more"`
			Count int  `json:"count"`
		}{p.more, p.count}),
		Target: target,
	}
}
