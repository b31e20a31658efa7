package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/enipool/enipool/pkg/devices"
)

// writeDue does what is to do about the slice.
func (d *Devices) writeDue(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	have, others := d.newest()
	if err := d.remove(ctx, others...); err != nil {
		return err
	}
	if d.off {
		if have == nil {
			return nil
		}
		return d.remove(ctx, have)
	}
	d.noteShown(have)
	node, known := d.view.readNode()
	if !known || !d.claims.Registered() || d.isSingle() {
		return nil // what there is stays
	}
	return d.write(ctx, node, have)
}

// newest returns the slice as it is watched, or as our last write left it if the watch has not come that far, and what
// else is there of the driver.
func (d *Devices) newest() (have *resourcev1.ResourceSlice, others []*resourcev1.ResourceSlice) {
	d.mu.Lock()
	own := d.own
	d.mu.Unlock()
	for _, object := range d.watch.GetStore().List() {
		switch s, _ := object.(*resourcev1.ResourceSlice); {
		case s.Spec.Driver != Driver || s.Spec.NodeName == nil || *s.Spec.NodeName != d.node: // a proxy that does not select
		case s.Name != sliceName(d.node):
			others = append(others, s)
		default:
			have = s
		}
	}
	switch {
	case own == nil:
	case have != nil && older(have.ResourceVersion, own.ResourceVersion):
		have = own
	case have == nil && !reached(d.watch.LastSyncResourceVersion(), own.ResourceVersion):
		have = own
	}
	return have, others
}

// reached tells whether a watch has come as far as a version. What it does not have then is gone: it tells no deletion of what it never told
// of, as when a kubelet that starts wipes what was written while the watch was broken.
func reached(watched, version string) bool {
	order, err := resourceversion.CompareResourceVersion(watched, version)
	return err == nil && order >= 0
}

func (d *Devices) remove(ctx context.Context, list ...*resourcev1.ResourceSlice) error {
	for _, s := range list {
		err := d.rest.Delete().Resource(slicesResource).Name(s.Name).Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the ResourceSlice %s: %w", s.Name, err)
		}
	}
	return nil
}

// write makes the slice or replaces it where it does not say what is so.
func (d *Devices) write(ctx context.Context, node *corev1.Node, have *resourcev1.ResourceSlice) error {
	d.mu.Lock()
	is, known := d.is, d.total && d.told
	d.mu.Unlock()
	if !known {
		return nil
	}
	want := sliceOf(node, is.List(devices.Reserved(d.claims.Claims())))
	var made resourcev1.ResourceSlice
	var err error
	if have == nil {
		err = d.rest.Post().Resource(slicesResource).Body(want).Do(ctx).Into(&made)
	} else if next := nextSlice(have, want); next != nil {
		next.TypeMeta = want.TypeMeta
		err = d.rest.Put().Resource(slicesResource).Name(next.Name).Body(next).Do(ctx).Into(&made)
	} else {
		return nil
	}
	if err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			d.forget(have)
		}
		return fmt.Errorf("write the ResourceSlice: %w", err)
	}
	if !counts(&made) {
		return d.leave(ctx, &made)
	}
	d.mu.Lock()
	d.own = &made
	d.mu.Unlock()
	d.noteShown(&made)
	return nil
}

// counts tells whether several pods can take each device. An API server without consumable capacity drops that, and keeps the rest.
func counts(s *resourcev1.ResourceSlice) bool {
	return !slices.ContainsFunc(s.Spec.Devices, func(is resourcev1.Device) bool {
		return is.AllowMultipleAllocations == nil || !*is.AllowMultipleAllocations
	})
}

// leave takes away a slice that does not count, and lets the Node count until the agent starts again.
func (d *Devices) leave(ctx context.Context, made *resourcev1.ResourceSlice) error {
	if err := d.remove(ctx, made); err != nil {
		return err
	}
	d.mu.Lock()
	d.own, d.single = nil, true
	d.mu.Unlock()
	d.noteShown(nil)
	d.view.signalAll()
	d.log.Error("the API server lets one pod alone take a device, so the Node's resource counts addresses",
		"todo", "use Kubernetes 1.36 or later with the feature gate DRAConsumableCapacity, and then restart the agent; or set kubernetes.dra to false")
	return nil
}

func (d *Devices) isSingle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.single
}

// forget ends what our last write left, of which others know better.
func (d *Devices) forget(have *resourcev1.ResourceSlice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own == have {
		d.own = nil
	}
}

// noteShown notes whether there is an address in the slice, and tells who waits for that.
func (d *Devices) noteShown(s *resourcev1.ResourceSlice) {
	is := s != nil && len(s.Spec.Devices) > 0
	d.mu.Lock()
	changed := d.offers != is
	if d.offers = is; changed {
		d.since = time.Now()
	}
	d.mu.Unlock()
	if changed {
		d.view.signalAll()
	}
}
