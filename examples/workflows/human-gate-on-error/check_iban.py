"""Checks the check digits of an account number."""

import json
import os
import sys
from pathlib import Path

iban = sys.argv[1]
digits = "".join(str(int(letter, 36)) for letter in iban[4:] + iban[:4])
if int(digits) % 97 == 1:
    print(json.dumps({"iban": iban}))
else:
    error = {
        "kind": "external.bank.iban_invalid",
        "message": "the check digits are wrong",
        "details": {"iban": iban},
    }
    Path(os.environ["FAILWELL_ERROR_OUT"]).write_text(json.dumps(error), encoding="utf-8")
