package admin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ecotone-dev/ecotone/abi"
	"github.com/ecotone-dev/ecotone/gateway/policy"
)

// Bounds of one page.
const (
	defaultPage = 50
	maxPage     = 500
)

// list is one page of a listing.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // cursor: give it as ?after=
}

// cut answers one page of a listing that is read page by page.
func cut[T any](c *call, read func(policy.Cut) (policy.Page[T], error)) (*reply, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	p, err := read(policy.Cut{After: c.r.URL.Query().Get("after"), Limit: limit})
	return ok(list[T]{Items: p.Items, Next: p.Next}, err)
}

// page cuts a complete listing. key names each
// item; names give the order, and a cursor holds one. Items that fail keep are left out.
func page[T any](c *call, items []T, err error, key func(T) string, keep func(T) bool) (*reply, error) {
	if err != nil {
		return nil, err
	}
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	after := c.r.URL.Query().Get("after")
	items = slices.SortedFunc(slices.Values(items), func(a, b T) int { return strings.Compare(key(a), key(b)) })
	out := list[T]{Items: []T{}}
	for _, item := range items {
		if k := key(item); (after != "" && strings.Compare(k, after) <= 0) || (keep != nil && !keep(item)) {
			continue
		}
		if len(out.Items) == limit {
			out.Next = key(out.Items[limit-1])
			break
		}
		out.Items = append(out.Items, item)
	}
	return ok(out, nil)
}

func (c *call) limit() (int, error) {
	v := c.r.URL.Query().Get("limit")
	if v == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxPage || strconv.Itoa(n) != v {
		return 0, abi.Errorf(abi.CodeInvalidRequest, "limit must be a whole number from 1 to %d", maxPage).At("limit")
	}
	return n, nil
}

// find is the one of items that is meant, or NOT_FOUND naming what.
func find[T any](items []T, err error, what string, is func(T) bool) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	if i := slices.IndexFunc(items, is); i >= 0 {
		return items[i], nil
	}
	return none, abi.Errorf(abi.CodeNotFound, "there is no such %s", what)
}
