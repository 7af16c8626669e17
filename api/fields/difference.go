package fields

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"time"
)

// The difference of two objects says which fields were set, changed and taken away, as far as
// that decides who owns what then. As with outlines, values do not count: the status of a
// thousand pods that get ready changes in one way.
//
// Equal is what has the same JSON, and different what has another one or, as a list that is nil
// and one that is empty, may have one. What is different is appended with all that tells whether
// it is different in JSON. So two pairs of objects with the same difference compare in the same way.
//
// A diff returns false if it cannot tell: of a list with an item twice, for instance.

func (leafOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	if before.Equal(after) {
		return to, true
	}
	return leafDiff(to, before.IsZero(), after.IsZero()), true
}

func leafDiff(to []byte, before, after bool) []byte {
	return addBit(addBit(append(to, 'x'), before), after)
}

func (textOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	if before.Equal(after) {
		return to, true
	}
	a, err := json.Marshal(before.Interface())
	b, wrong := json.Marshal(after.Interface())
	if err != nil || wrong != nil {
		return to, false
	}
	if bytes.Equal(a, b) {
		return to, true
	}
	return leafDiff(to, before.IsZero(), after.IsZero()), true
}

func (m momentOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	a, b := before.Field(0).Interface().(time.Time), after.Field(0).Interface().(time.Time)
	if a.IsZero() == b.IsZero() && a.Truncate(m.unit).Equal(b.Truncate(m.unit)) {
		return to, true
	}
	return leafDiff(to, a.IsZero(), b.IsZero()), true
}

func (p pointerOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	switch {
	case before.IsNil() && after.IsNil():
		return to, true
	case before.IsNil():
		return p.elem.add(append(to, 'a'), after.Elem()), true
	case after.IsNil():
		return p.elem.add(append(to, 'r'), before.Elem()), true
	}
	return p.elem.diff(to, before.Elem(), after.Elem())
}

func (s structOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	start := len(to)
	to = append(to, 's')
	for i, field := range s {
		if field == nil {
			continue
		}
		mark := len(to)
		to = binary.AppendUvarint(to, uint64(i)+1)
		inner := len(to)
		var ok bool
		if to, ok = field.diff(to, before.Field(i), after.Field(i)); !ok {
			return to, false
		}
		to = unlessEmpty(to, mark, inner)
	}
	return closed(to, start, start+1, false), true
}

// unlessEmpty takes an entry back whose name, from mark to named, nothing follows.
func unlessEmpty(to []byte, mark, named int) []byte {
	if len(to) == named {
		return to[:mark]
	}
	return to
}

// closed ends what began at start, or takes it back if there are no entries since first and nothing
// else differs.
func closed(to []byte, start, first int, differ bool) []byte {
	if !differ && len(to) == first {
		return to[:start]
	}
	return append(to, 0)
}

// states are those of two maps or lists. They count as different if they are, also where
// nothing in them is.
func states(to []byte, before, after reflect.Value) (_ []byte, differ bool) {
	start := len(to)
	to = addState(addState(to, before), after)
	return to, to[start] != to[start+1]
}

func (m mapOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	start := len(to)
	to, differ := states(append(to, 'm'), before, after)
	inner := len(to)
	for _, key := range keysOf(before, after) {
		a, b := before.MapIndex(key), after.MapIndex(key)
		mark := len(to)
		to = addText(append(to, 'k'), key.String())
		same, ok := len(to), true
		switch {
		case !a.IsValid():
			to = m.elem.add(append(to, 'a'), b)
		case !b.IsValid():
			to = m.elem.add(append(to, 'r'), a)
		default:
			to, ok = m.elem.diff(to, a, b)
		}
		if !ok {
			return to, false
		}
		to = unlessEmpty(to, mark, same)
	}
	return closed(to, start, inner, differ), true
}

// keysOf are the keys of two maps together, sorted.
func keysOf(before, after reflect.Value) []reflect.Value {
	keys := before.MapKeys()
	for _, key := range after.MapKeys() {
		if !before.MapIndex(key).IsValid() {
			keys = append(keys, key)
		}
	}
	return sorted(keys)
}

func (bytesOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	start := len(to)
	to, differ := states(append(to, 'b'), before, after)
	if !differ && string(before.Bytes()) == string(after.Bytes()) {
		return to[:start], true
	}
	return to, true
}

func (ownersOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	return addState(addState(append(to, 'o'), before), after), after.Len() == 0 && before.Len() > 0
}

func (a atomicOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	start := len(to)
	to, differ := states(append(to, 'l'), before, after)
	if before.Len() != after.Len() {
		to[start] = 'd' // all else is told from what follows
		return to, true
	}
	inner := len(to)
	for i := range before.Len() {
		mark := len(to)
		to = binary.AppendUvarint(to, uint64(i)+1)
		same := len(to)
		var ok bool
		if to, ok = a.elem.diff(to, before.Index(i), after.Index(i)); !ok {
			return to, false
		}
		to = unlessEmpty(to, mark, same)
	}
	return closed(to, start, inner, differ), true
}

func (l listOutline) diff(to []byte, before, after reflect.Value) ([]byte, bool) {
	start := len(to)
	if l.same(to, before, after) {
		return to, true
	}
	to, differ := states(append(to, 'l'), before, after)
	inner := len(to)
	was, ok := l.byKey(before)
	is, fine := l.byKey(after)
	if !ok || !fine {
		return to, false
	}
	for i := range after.Len() {
		key := l.keyOf(after.Index(i))
		mark := len(to)
		to = addText(append(to, 'k'), key)
		same := len(to)
		if old, there := was[key]; !there {
			to = l.elem.add(append(to, 'a'), after.Index(i))
		} else if to, ok = l.elem.diff(to, before.Index(old), after.Index(i)); !ok {
			return to, false
		}
		to = unlessEmpty(to, mark, same)
	}
	for i := range before.Len() {
		key := l.keyOf(before.Index(i))
		if _, there := is[key]; !there {
			to = l.elem.add(append(addText(append(to, 'k'), key), 'r'), before.Index(i))
		}
	}
	return closed(to, start, inner, differ), true
}

// same says whether two lists are equal, item by item. Most that are compared are, and then it does
// not matter what their keys are.
func (l listOutline) same(to []byte, before, after reflect.Value) bool {
	if before.IsNil() != after.IsNil() || before.Len() != after.Len() {
		return false
	}
	start := len(to)
	for i := range before.Len() {
		to, ok := l.elem.diff(to, before.Index(i), after.Index(i))
		if !ok || len(to) > start {
			return false
		}
	}
	return true
}

// byKey finds the items of a list by their keys. It returns false if two have the same ones, or
// if one lacks a key: the schema may have a default for it.
func (l listOutline) byKey(list reflect.Value) (map[string]int, bool) {
	if list.Len() == 0 {
		return nil, true
	}
	items := make(map[string]int, list.Len())
	for i := range list.Len() {
		for _, key := range l.keys {
			if list.Index(i).FieldByIndex(key).IsZero() {
				return nil, false
			}
		}
		items[l.keyOf(list.Index(i))] = i
	}
	return items, len(items) == list.Len()
}

func (l listOutline) keyOf(item reflect.Value) string { return string(l.addKeys(nil, item)) }
