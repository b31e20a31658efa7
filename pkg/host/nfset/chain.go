package nfset

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// HasChain tells whether the table is there with a chain of the name.
func (t Table) HasChain(name string) (bool, error) {
	c, err := t.Open()
	if err != nil {
		return false, err
	}
	defer c.Close()
	var m message
	start := m.beginMessage(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETCHAIN, unix.NLM_F_ACK, 1, t.Family, 0)
	m.appendText(unix.NFTA_CHAIN_TABLE, t.Name)
	m.appendText(unix.NFTA_CHAIN_NAME, name)
	m.endMessage(start)
	replies, err := c.socket.exchange(m.bytes)
	for _, r := range replies {
		switch {
		case r.Errno() == unix.ENOENT:
			return false, nil
		case r.Errno() != 0:
			err = r.Errno()
		}
	}
	if err != nil {
		return false, fmt.Errorf("read nftables chain %s %s: %w", t.Name, name, err)
	}
	return true, nil
}
