package fastpath

import (
	"context"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// announced are the changes that the kernel tells of: nftables, IPsec policies and
// queues. Of the rest that others could decide with it tells nothing.
var announced = [...]struct {
	family int
	group  uint32
}{
	{unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES},
	{unix.NETLINK_XFRM, xfrmPolicyGroup},
	{unix.NETLINK_ROUTE, unix.RTNLGRP_TC},
}

const xfrmPolicyGroup = 4 // XFRMNLGRP_POLICY of <linux/xfrm.h>

// Hear sends to changed, which must have room for one, whenever the kernel announces
// a change in the network namespace of the calling thread, until ctx ends. What the
// kernel can't announce is an error; the rest is heard all the same.
func Hear(ctx context.Context, changed chan<- struct{}) error {
	var errs []error
	for _, a := range announced {
		conn, err := listenTo(a.family, a.group)
		if unknownProtocol(err) {
			continue // what the kernel does not have does not change
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("listen to group %d of netlink family %d: %w", a.group, a.family, err))
			continue
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		go pass(ctx, conn, changed)
	}
	return errors.Join(errs...)
}

func listenTo(family int, group uint32) (*netlink.Conn, error) {
	conn, err := netlink.Dial(family, nil)
	if err != nil {
		return nil, err
	}
	if family == unix.NETLINK_NETFILTER {
		err = setGenerationFilter(conn)
	}
	if err = errors.Join(err, conn.JoinGroup(group)); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// setGenerationFilter leaves of the messages that nftables sends the one that ends
// each transaction. A transaction of kube-proxy may have thousands.
func setGenerationFilter(conn *netlink.Conn) error {
	const kindAt = 4
	kind := uint16(unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWGEN)
	code, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: kindAt, Size: 2},
		// A filter reads numbers in the order of the network, this one has the machine's.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(uint16(be16(kind))), SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: 1 << 16},
	})
	if err != nil {
		return err
	}
	return conn.SetBPF(code)
}

func pass(ctx context.Context, conn *netlink.Conn, changed chan<- struct{}) {
	defer conn.Close()
	for ctx.Err() == nil {
		if _, err := conn.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}
