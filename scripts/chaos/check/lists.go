package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kontiki/scripts/chaos/history"
)

// wholeList is a list as one answer gave it, or as its pages did.
type wholeList struct {
	*history.Op
	upTo string // the last key that it tells of, empty for all
}

// replay: a list holds what the known history up to its version leaves, no more and no less.
func replay(s *story) (found []Finding) {
	for _, list := range s.wholeLists() {
		ids := []uint64{list.ID}
		shown := make(map[string]bool)
		for _, item := range list.Items {
			shown[item.Key] = true
			if item.RV > list.RV {
				found = append(found, Finding{Promise: Replay, Key: item.Key, IDs: ids, Detail: fmt.Sprintf("a list at version %d shows version %d", list.RV, item.RV)})
			} else if next := s.present(item.Key, item.RV, list.RV); next != nil {
				found = append(found, Finding{Promise: Replay, Key: item.Key, IDs: ids, Detail: fmt.Sprintf("a list at version %d shows version %d, which version %d replaced", list.RV, item.RV, next.rv)})
			}
		}
		found = append(found, s.lacking(list, shown)...)
	}
	return found
}

// lacking looks for what a list should show and does not.
func (s *story) lacking(list wholeList, shown map[string]bool) (found []Finding) {
	for key := range s.keys {
		if shown[key] || resourceOf(key) != list.Resource || list.upTo != "" && key > list.upTo {
			continue
		}
		if last := s.absent(key, list.RV, list.RV, list.Return); last != nil {
			found = append(found, Finding{
				Promise: Replay, Key: key, IDs: []uint64{list.ID, last.by},
				Detail: fmt.Sprintf("a list on %s at version %d does not show version %d", list.Node, list.RV, last.rv),
			})
		}
	}
	return found
}

// wholeLists puts pages together. Of pages that are of different states nothing can be said but that.
func (s *story) wholeLists() (whole []wholeList) {
	for i := range s.lists {
		if s.lists[i].Pages == 0 {
			whole = append(whole, wholeList{Op: &s.lists[i]})
		}
	}
	for _, pages := range s.pages() {
		list := *pages[0]
		if slices.ContainsFunc(pages, func(page *history.Op) bool { return page.RV != list.RV }) {
			continue
		}
		list.Items = nil
		for _, page := range pages {
			list.Items = append(list.Items, page.Items...)
		}
		last := pages[len(pages)-1]
		if !last.More {
			whole = append(whole, wholeList{Op: &list})
		} else if n := len(list.Items); n > 0 {
			whole = append(whole, wholeList{&list, list.Items[n-1].Key})
		}
	}
	return whole
}

// pages are the successful ones of each paged list, in order. Where one failed, the ones before it count.
func (s *story) pages() map[uint64][]*history.Op {
	pages := make(map[uint64][]*history.Op)
	for i := range s.lists {
		if op := &s.lists[i]; op.Pages != 0 {
			pages[op.Pages] = append(pages[op.Pages], op)
		}
	}
	for _, these := range pages {
		slices.SortFunc(these, func(a, b *history.Op) int { return cmp.Compare(a.Call, b.Call) })
	}
	return pages
}

// onePageState: all pages of a list have its version, and go on where the one before ended.
func onePageState(s *story) (found []Finding) {
	for _, pages := range s.pages() {
		last := ""
		for _, page := range pages {
			if page.RV != pages[0].RV {
				found = append(found, Finding{
					Promise: OnePageState, IDs: []uint64{pages[0].ID, page.ID},
					Detail: fmt.Sprintf("a page of a list of %s at version %d is at version %d", page.Resource, pages[0].RV, page.RV),
				})
			}
			for _, item := range page.Items {
				if strings.Compare(item.Key, last) <= 0 {
					found = append(found, Finding{
						Promise: OnePageState, Key: item.Key, IDs: []uint64{pages[0].ID, page.ID},
						Detail: fmt.Sprintf("comes after %s in a list in pages", last),
					})
				}
				last = item.Key
			}
		}
	}
	return found
}
