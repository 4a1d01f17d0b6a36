package session

// SetMost changes how much is remembered about sessions.
func (k *Keeper) SetMost(most int) { k.ended.most = most }
