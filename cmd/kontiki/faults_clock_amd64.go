//go:build faults

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// wallClock is what replaces time.Now in this process. It lives outside of any function
// because the patched code has nowhere to keep a receiver.
var wallClock struct {
	patch  sync.Once
	failed error
	begin  time.Time    // read before the patch
	offset atomic.Int64 // seconds
}

// shiftClock makes the wall clock of this process wrong, and leaves the monotonic one, as a
// jump of the machine's clock does. Linux shifts only the monotonic clock for a process of
// its own, so time.Now's machine code becomes a jump to shiftedNow.
func shiftClock(offset string) error {
	d, err := time.ParseDuration(offset)
	if err != nil {
		return err
	}
	wallClock.patch.Do(func() {
		wallClock.begin = time.Now()
		wallClock.failed = redirect(reflect.ValueOf(time.Now).UnsafePointer(), reflect.ValueOf(shiftedNow).UnsafePointer())
	})
	wallClock.offset.Store(int64(d / time.Second))
	return wallClock.failed
}

// shiftedNow is the time since the patch on the monotonic clock, which neither Since nor
// Add takes from time.Now, with another wall clock: in a Time with a monotonic reading its
// seconds begin at bit 30 of the first word.
func shiftedNow() time.Time {
	t := wallClock.begin.Add(time.Since(wallClock.begin))
	*(*uint64)(unsafe.Pointer(&t)) += uint64(wallClock.offset.Load()) << 30
	return t
}

// redirect writes a jump over a function's first instruction, while nobody else calls it.
func redirect(from, to unsafe.Pointer) error {
	const jumpLength = 5
	distance := int64(uintptr(to)) - int64(uintptr(from)) - jumpLength
	if distance < math.MinInt32 || distance > math.MaxInt32 {
		return fmt.Errorf("the code is too large to redirect a function")
	}
	page := uintptr(syscall.Getpagesize())
	within := uintptr(from) % page
	pages := unsafe.Slice((*byte)(unsafe.Add(from, -int(within))), (within+jumpLength+page-1)/page*page)
	if err := syscall.Mprotect(pages, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC); err != nil {
		return fmt.Errorf("cannot change the code of time.Now: %w", err)
	}
	copy(pages[within:], binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(int32(distance))))
	return nil
}
