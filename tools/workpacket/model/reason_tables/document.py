from workpacket.model.reasons import Reason
REASONS = tuple(Reason(c,"T","E.","R.",family="document") for c in ("field_missing","field_unknown","field_type","field_value","file_too_large"))
