package storage_test

import (
	"context"
	"testing"

	upstream "k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

// plain is a function of the suite that wants a store and nothing else.
type plain = func(context.Context, *testing.T, upstream.Interface)

// upstreamCases are the functions of k8s.io/apiserver/pkg/storage/testing: a
// plain one, or a call with the arguments that fit this store.
var upstreamCases = map[string]any{
	"RunTestCreate": func(c *upstreamCase) {
		storagetesting.RunTestCreate(c.ctx, c.t, c.store, c.storesNoVersion)
	},
	"RunTestCreateWithTTL": func(c *upstreamCase) {
		c.expire()
		storagetesting.RunTestCreateWithTTL(c.ctx, c.t, c.store)
	},
	"RunTestCreateWithKeyExist":                         storagetesting.RunTestCreateWithKeyExist,
	"RunTestGet":                                        storagetesting.RunTestGet,
	"RunTestUnconditionalDelete":                        storagetesting.RunTestUnconditionalDelete,
	"RunTestConditionalDelete":                          storagetesting.RunTestConditionalDelete,
	"RunTestDeleteWithSuggestion":                       storagetesting.RunTestDeleteWithSuggestion,
	"RunTestDeleteWithSuggestionAndConflict":            storagetesting.RunTestDeleteWithSuggestionAndConflict,
	"RunTestDeleteWithConflict":                         storagetesting.RunTestDeleteWithConflict,
	"RunTestDeleteWithSuggestionOfDeletedObject":        storagetesting.RunTestDeleteWithSuggestionOfDeletedObject,
	"RunTestValidateDeletionWithSuggestion":             storagetesting.RunTestValidateDeletionWithSuggestion,
	"RunTestValidateDeletionWithOnlySuggestionValid":    storagetesting.RunTestValidateDeletionWithOnlySuggestionValid,
	"RunTestPreconditionalDeleteWithSuggestion":         storagetesting.RunTestPreconditionalDeleteWithSuggestion,
	"RunTestPreconditionalDeleteWithOnlySuggestionPass": storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass,
	"RunTestList": func(c *upstreamCase) {
		// Twice, because a watch cache ignores limits at resource version 0. The
		// recorder would see lists that went past the cache to etcd.
		recorder := storagetesting.NewKubernetesRecorder(nil)
		c.t.Run("cached", func(t *testing.T) {
			storagetesting.RunTestList(c.ctx, t, c.store, c.compact, true, recorder)
		})
		c.t.Run("uncached", func(t *testing.T) {
			again := c.on(t)
			storagetesting.RunTestList(c.ctx, t, again.uncached(), again.compact, false, recorder)
		})
	},
	"RunTestConsistentList": func(c *upstreamCase) {
		storagetesting.RunTestConsistentList(c.ctx, c.t, c.store, c.increaseRV, false, true, false)
	},
	"RunTestGetListNonRecursive": func(c *upstreamCase) {
		storagetesting.RunTestGetListNonRecursive(c.ctx, c.t, c.increaseRV, c.store)
	},
	"RunTestGetListRecursivePrefix": storagetesting.RunTestGetListRecursivePrefix,
	"RunTestListContinuation": func(c *upstreamCase) {
		storagetesting.RunTestListContinuation(c.ctx, c.t, c.store, countsNothing)
	},
	"RunTestListPaginationRareObject": func(c *upstreamCase) {
		storagetesting.RunTestListPaginationRareObject(c.ctx, c.t, c.store, countsNothing)
	},
	"RunTestListContinuationWithFilter": func(c *upstreamCase) {
		storagetesting.RunTestListContinuationWithFilter(c.ctx, c.t, c.store, countsNothing)
	},
	"RunTestListInconsistentContinuation": func(c *upstreamCase) {
		storagetesting.RunTestListInconsistentContinuation(c.ctx, c.t, c.uncached(), c.compact)
	},
	"RunTestListResourceVersionMatch": func(c *upstreamCase) {
		storagetesting.RunTestListResourceVersionMatch(c.ctx, c.t, blind{newTransformed(c.t, c.node, c.root)})
	},
	"RunTestGuaranteedUpdate": func(c *upstreamCase) {
		storagetesting.RunTestGuaranteedUpdate(c.ctx, c.t, newTransformed(c.t, c.node, c.root), c.storesNoVersion)
	},
	"RunTestGuaranteedUpdateWithTTL": func(c *upstreamCase) {
		c.expire()
		storagetesting.RunTestGuaranteedUpdateWithTTL(c.ctx, c.t, c.store)
	},
	"RunTestGuaranteedUpdateChecksStoredData": func(c *upstreamCase) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(c.ctx, c.t, newTransformed(c.t, c.node, c.root))
	},
	"RunTestGuaranteedUpdateWithConflict":              storagetesting.RunTestGuaranteedUpdateWithConflict,
	"RunTestGuaranteedUpdateWithSuggestionAndConflict": storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict,
	"RunTestTransformationFailure": func(c *upstreamCase) {
		storagetesting.RunTestTransformationFailure(c.ctx, c.t, newTransformed(c.t, c.node, c.root))
	},
	"RunTestStats": func(c *upstreamCase) {
		storagetesting.RunTestStats(c.ctx, c.t, c.store, codec, identity.NewEncryptCheckTransformer(), false)
	},
	"RunTestListPaging":          storagetesting.RunTestListPaging,
	"RunTestNamespaceScopedList": storagetesting.RunTestNamespaceScopedList,
	"RunTestCompactRevision": func(c *upstreamCase) {
		storagetesting.RunTestCompactRevision(c.ctx, c.t, c.store, c.increaseRV, c.compact)
	},
	"RunTestKeySchema": storagetesting.RunTestKeySchema,

	"RunTestWatch": storagetesting.RunTestWatch,
	"RunTestWatchFromZero": func(c *upstreamCase) {
		storagetesting.RunTestWatchFromZero(c.ctx, c.t, c.store, c.compact)
	},
	"RunTestDeleteTriggerWatch":   storagetesting.RunTestDeleteTriggerWatch,
	"RunTestWatchFromNonZero":     storagetesting.RunTestWatchFromNonZero,
	"RunTestDelayedWatchDelivery": storagetesting.RunTestDelayedWatchDelivery,
	"RunTestWatchError": func(c *upstreamCase) {
		storagetesting.RunTestWatchError(c.ctx, c.t, newTransformed(c.t, c.node, c.root))
	},
	"RunTestWatchContextCancel":                 storagetesting.RunTestWatchContextCancel,
	"RunTestWatcherTimeout":                     storagetesting.RunTestWatcherTimeout,
	"RunTestWatchDeleteEventObjectHaveLatestRV": storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV,
	"RunTestWatchInitializationSignal":          storagetesting.RunTestWatchInitializationSignal,
	"RunTestClusterScopedWatch":                 storagetesting.RunTestClusterScopedWatch,
	"RunTestNamespaceScopedWatch":               storagetesting.RunTestNamespaceScopedWatch,
	"RunTestWatchDispatchBookmarkEvents": func(c *upstreamCase) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(c.ctx, c.t, c.store, true)
	},
	"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": func(c *upstreamCase) {
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(c.ctx, c.t, unhurried{c.store})
	},
	"RunSendInitialEventsBackwardCompatibility": storagetesting.RunSendInitialEventsBackwardCompatibility,
	"RunWatchSemantics":                         gated(storagetesting.RunWatchSemantics),
	"RunWatchSemanticInitialEventsExtended":     gated(storagetesting.RunWatchSemanticInitialEventsExtended),
	"RunWatchListMatchSingle":                   gated(storagetesting.RunWatchListMatchSingle),
	"RunWatchErrorIsBlockingFurtherEvents": func(c *upstreamCase) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(c.ctx, c.t, newTransformed(c.t, c.node, c.root))
	},
}

// upstreamLeftOut are the functions that do not apply, and why.
var upstreamLeftOut = map[string]string{
	"RunTestWatchWithUnsafeDelete": "deleting what cannot be decoded (IgnoreStoreReadError) is behind the alpha gate " +
		"AllowUnsafeMalformedObjectDeletion, which is off; the API server clears the option then",
	"RunOptionalTestProgressNotify": "ProgressNotify is how a watch cache on etcd learns of progress; there is no cache " +
		"here, and watches make bookmarks themselves (RunTestWatchDispatchBookmarkEvents)",
}
