"""The errors of operating systems: their names, numbers and sentences, and the kind that each stands for.

`errno` names come from POSIX and from Node, which adds those of its resolver. A printed sentence is what
`strerror` of glibc or BSD returns, or what Windows prints for the same condition.
"""

import errno
from collections.abc import Iterable

from failwell.adapters.classification import Classification, Phase

_NAMES: dict[str, Iterable[str]] = {
    "resource.disk": ("ENOSPC", "EDQUOT", "EFBIG"),
    "resource.system_memory": ("ENOMEM", "ENOBUFS"),
    "resource.file_handles": ("EMFILE", "ENFILE"),
    "validation.path_not_found": ("ENOENT", "ENXIO", "ENODEV"),
    "validation.path_wrong_type": ("ENOTDIR", "EISDIR", "ELOOP"),
    "validation.path_denied": ("EACCES", "EPERM", "EROFS"),
    "validation.input_invalid": ("EINVAL", "ENAMETOOLONG", "EDOM", "ERANGE", "E2BIG", "EILSEQ"),
    "internal.spawn_failed": ("ENOEXEC",),
    # Someone else listens there. It goes on doing so, and another address has to be chosen.
    "validation.config_invalid": ("EADDRINUSE",),
    "tool.busy": (
        "EAGAIN", "EWOULDBLOCK", "EINTR", "EBUSY", "ETXTBSY", "EDEADLK", "ENOLCK", "EALREADY",
        "EINPROGRESS",
    ),
    "provider.connection": (
        "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EHOSTDOWN", "EADDRNOTAVAIL", "ENOTFOUND",
        "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA", "EAI_NONAME",
    ),
    "provider.outcome_unknown": (
        "ECONNRESET", "ECONNABORTED", "EPIPE", "ESHUTDOWN", "ENOTCONN", "ENETRESET", "ETIMEDOUT",
    ),
}  # fmt: skip

KIND_BY_NAME: dict[str, str] = {name: kind for kind, names in _NAMES.items() for name in names}
"""Name of an error → its kind."""

NAME_BY_NUMBER: dict[int, str] = {
    number: name for name in reversed(KIND_BY_NAME) if (number := getattr(errno, name, None)) is not None
}
"""Number on this platform → name; of two names the first in the table."""

PHASE_BY_NAME: dict[str, Phase] = {
    **dict.fromkeys(("ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA", "EAI_NONAME"), "dns"),
    **dict.fromkeys(
        ("ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EHOSTDOWN", "EADDRNOTAVAIL"), "connect"
    ),
    **dict.fromkeys(("ECONNRESET", "ECONNABORTED", "EPIPE", "ESHUTDOWN", "ENOTCONN", "ENETRESET"), "closed"),
    "ETIMEDOUT": "read",
}
"""How far a call got that ended with this error."""

NAME_BY_WINDOWS_NUMBER: dict[int, str] = {
    2: "ENOENT", 3: "ENOENT", 4: "EMFILE", 5: "EACCES", 8: "ENOMEM", 14: "ENOMEM", 32: "EBUSY", 33: "EBUSY", 39: "ENOSPC",
    112: "ENOSPC", 193: "ENOEXEC", 206: "ENAMETOOLONG", 267: "ENOTDIR", 1450: "ENOMEM", 1455: "ENOMEM", 10013: "EACCES",
    10024: "EMFILE", 10048: "EADDRINUSE", 10049: "EADDRNOTAVAIL", 10050: "ENETDOWN", 10051: "ENETUNREACH",
    10052: "ENETRESET", 10053: "ECONNABORTED", 10054: "ECONNRESET", 10055: "ENOBUFS", 10057: "ENOTCONN",
    10058: "ESHUTDOWN", 10060: "ETIMEDOUT", 10061: "ECONNREFUSED", 10064: "EHOSTDOWN", 10065: "EHOSTUNREACH",
    11001: "ENOTFOUND", 11002: "EAI_AGAIN", 11004: "EAI_NODATA",
}  # fmt: skip
"""System error codes of Windows, and those of Winsock."""

NAME_BY_SENTENCE: dict[str, str] = {
    "connection refused": "ECONNREFUSED",
    "actively refused": "ECONNREFUSED",
    "network is unreachable": "ENETUNREACH",
    "network unreachable": "ENETUNREACH",
    "no route to host": "EHOSTUNREACH",
    "host is unreachable": "EHOSTUNREACH",
    "host is down": "EHOSTDOWN",
    "network is down": "ENETDOWN",
    "cannot assign requested address": "EADDRNOTAVAIL",
    "can't assign requested address": "EADDRNOTAVAIL",
    "name or service not known": "ENOTFOUND",
    "nodename nor servname provided": "ENOTFOUND",
    "no address associated with hostname": "ENOTFOUND",
    "no such host": "ENOTFOUND",
    "unknown host": "ENOTFOUND",
    "could not resolve host": "ENOTFOUND",
    "couldn't resolve host": "ENOTFOUND",
    "could not translate host name": "ENOTFOUND",
    "failed to lookup address information": "ENOTFOUND",
    "getaddrinfo failed": "ENOTFOUND",
    "temporary failure in name resolution": "EAI_AGAIN",
    "server misbehaving": "EAI_AGAIN",
    "connection reset by peer": "ECONNRESET",
    "connection was reset": "ECONNRESET",
    "forcibly closed by the remote host": "ECONNRESET",
    "software caused connection abort": "ECONNABORTED",
    "broken pipe": "EPIPE",
    "socket is not connected": "ENOTCONN",
    "connection timed out": "ETIMEDOUT",
    "operation timed out": "ETIMEDOUT",
    "did not properly respond after a period of time": "ETIMEDOUT",
    "no space left on device": "ENOSPC",
    "there is not enough space on the disk": "ENOSPC",
    "disk quota exceeded": "EDQUOT",
    "file too large": "EFBIG",
    "cannot allocate memory": "ENOMEM",
    "no buffer space available": "ENOBUFS",
    "too many open files": "EMFILE",
    "address already in use": "EADDRINUSE",
    "device or resource busy": "EBUSY",
    "being used by another process": "EBUSY",
    "text file busy": "ETXTBSY",
    "resource temporarily unavailable": "EAGAIN",
    "resource deadlock avoided": "EDEADLK",
    "interrupted system call": "EINTR",
    "no locks available": "ENOLCK",
    "no such file or directory": "ENOENT",
    "program not found": "ENOENT",
    "cannot find the file specified": "ENOENT",
    "cannot find the path specified": "ENOENT",
    "no such device or address": "ENXIO",
    "no such device": "ENODEV",
    "not a directory": "ENOTDIR",
    "is a directory": "EISDIR",
    "too many levels of symbolic links": "ELOOP",
    "permission denied": "EACCES",
    "access is denied": "EACCES",
    "operation not permitted": "EPERM",
    "read-only file system": "EROFS",
    "invalid argument": "EINVAL",
    "file name too long": "ENAMETOOLONG",
    "argument list too long": "E2BIG",
    "exec format error": "ENOEXEC",
}
"""What is printed for an error, in lower case → its name."""

_TRANSLATED: dict[str, str] = {
    "ECONNREFUSED": "verbindungsaufbau abgelehnt|connexion refusée|conexión rehusada|connessione rifiutata|conexão recusada|"
        "в соединении отказано|接続を拒否されました|拒绝连接|連線被拒絕|연결이 거부됨|"
        "zielcomputer die verbindung verweigerte|l'ordinateur cible l'a expressément refusée|equipo de destino denegó expresamente dicha conexión|máquina de destino as recusou ativamente|конечный компьютер отверг запрос|対象のコンピューターによって拒否された|目标计算机积极拒绝|目標電腦拒絕連線|대상 컴퓨터에서 연결을 거부했으므로",
    "ECONNRESET": "die verbindung wurde vom kommunikationspartner zurückgesetzt|connexion ré-initialisée par le correspondant|conexión reinicializada por la máquina remota|connessione interrotta dal corrispondente|conexão fechada pela outra ponta|"
        "соединение разорвано другой стороной|接続が相手からリセットされました|连接被对方重设|連線被對方重設|상대편이 연결을 끊음|"
        "vom remotehost geschlossen|fermée par l'hôte distant|interrupción forzada de una conexión existente|forzatamente chiusa dal|foi forçado o cancelamento de uma conexão existente|принудительно разорвал существующее подключение|リモート ホストに強制的に切断|远程主机强迫关闭了一个现有的连接|遠端主機已強制關閉|원격 호스트에 의해 강제로 끊겼습니다",
    "ETIMEDOUT": "die wartezeit für die verbindung ist abgelaufen|connexion terminée par expiration du délai d'attente|expiró el tiempo de conexión|connessione scaduta|tempo esgotado para conexão|"
        "время ожидания соединения истекло|接続がタイムアウトしました|连接超时|連線超過時間|연결 시간 초과|"
        "gegenstelle nach einer bestimmten zeitspanne nicht ordnungsgemäß reagiert|n'a pas répondu convenablement au-delà d'une certaine durée|no respondió adecuadamente tras un periodo de tiempo|接続済みの呼び出し先が一定の時間を過ぎても|连接方在一段时间后没有正确答复|連線對象有一段時間並未正確回應|연결된 구성원으로부터 응답이 없어",
    "EHOSTUNREACH": "keine route zum zielrechner|aucun chemin d'accès pour atteindre l'hôte cible|no existe ninguna ruta hasta el `host'|nessun instradamento per l'host|não há rota para o host|"
        "нет маршрута до узла|ホストへの経路がありません|没有到主机的路由|找不到通往該主機的路由路徑|호스트로 갈 루트가 없음",
    "ENETUNREACH": "das netzwerk ist nicht erreichbar|le réseau n'est pas accessible|la red es inaccesible|la rete non è raggiungibile|a rede está fora de alcance|"
        "сеть недоступна|ネットワークに届きません|网络不可达|無法接觸網路|네트워크가 접근 불가능합니다",
    "ENOTFOUND": "der name oder der dienst ist nicht bekannt|nom ou service inconnu|nombre o servicio desconocido|nome o servizio sconosciuto|nome ou serviço desconhecido|"
        "неизвестное имя или служба|名前またはサービスが不明です|未知的名称或服务|名稱或服務未知|이름 혹은 서비스를 알 수 없습니다",
    "EAI_AGAIN": "temporärer fehler bei der namensauflösung|échec temporaire dans la résolution du nom|fallo temporal en la resolución del nombre|errore temporaneo nella risoluzione del nome|falha temporário na resolução de nome|"
        "временный сбой в разрешении имен|名前解決に一時的に失敗しました|域名解析暂时失败|解析名稱時發生暫時性錯誤|name resolution에서 일시적인 실패",
    "EPIPE": "datenübergabe unterbrochen (broken pipe)|relais brisé (pipe)|tubería rota|pipe interrotta|pipe quebrado|"
        "обрыв канала|断开的管道|管線損壞|파이프가 깨어짐",
    "ENOSPC": "auf dem gerät ist kein speicherplatz mehr verfügbar|aucun espace disponible sur le périphérique|no queda espacio en el dispositivo|spazio esaurito sul device|não há espaço disponível no dispositivo|"
        "на устройстве не осталось свободного места|デバイスに空き領域がありません|设备上没有空间|裝置上已無多餘空間|장치에 남은 공간이 없음",
    "ENOMEM": "nicht genügend hauptspeicher verfügbar|ne peut allouer de la mémoire|no se pudo asignar memoria|impossibile allocare memoria|não foi possível alocar memória|"
        "невозможно выделить память|メモリを確保できません|无法分配内存|無法配置記憶體|메모리를 할당할 수 없습니다",
    "EMFILE": "zu viele offene dateien|trop de fichiers ouverts|demasiados ficheros abiertos|troppi file aperti|muitos arquivos abertos|"
        "слишком много открытых файлов|ファイルを開きすぎです|打开的文件过多|開啟太多檔案|열린 파일이 너무 많음",
    "EADDRINUSE": "die adresse wird bereits verwendet|adresse déjà utilisée|la dirección ya se está usando|indirizzo già in uso|endereço já em uso|"
        "адрес уже используется|アドレスは既に使用中です|地址已在使用|位址已經有在使用|주소가 이미 사용 중입니다",
    "ENOENT": "datei oder verzeichnis nicht gefunden|aucun fichier ou dossier de ce type|no existe el fichero o el directorio|file o directory non esistente|arquivo ou diretório inexistente|"
        "нет такого файла или каталога|そのようなファイルやディレクトリはありません|没有那个文件或目录|沒有此一檔案或目錄|그런 파일이나 디렉터리가 없습니다",
    "EACCES": "keine berechtigung|permission non accordée|permiso denegado|permesso negato|permissão negada|"
        "отказано в доступе|許可がありません|权限不够|拒絕不符權限的操作|허가 거부",
}  # fmt: skip
"""How glibc writes them in German, French, Spanish, Italian, Portuguese, Russian, Japanese, Chinese and Korean, and Windows most of them."""
NAME_BY_TRANSLATION: dict[str, str] = {
    sentence: name for name, sentences in _TRANSLATED.items() for sentence in sentences.split("|")
}
TRANSLATIONS_IN_ASCII = tuple(sentence for sentence in NAME_BY_TRANSLATION if sentence.isascii())


def read_errno(name: str) -> Classification | None:
    """The reading of an operating system's error by its name; `None` if the name is not known."""
    kind = KIND_BY_NAME.get(name)
    if kind is None:
        return None
    details: dict[str, object] = {"errno": name}
    return Classification.from_rule(
        kind=kind, rule=f"python.OSError.{name}", basis="errno", saw=name, details=details
    )


# [MS-ERREF], "NTSTATUS values": with these Windows ends a process, whatever language it is written in.
KIND_BY_NTSTATUS: dict[int, tuple[str, str]] = {
    **dict.fromkeys(
        (
            0x80000003, 0xC0000005, 0xC0000006, 0xC000001D, 0xC0000025, 0xC000008E, 0xC0000094, 0xC00000FD, 0xC0000374, 0xC0000409, 0xC0000420,
        ),
        ("internal.bug", "it crashed"),
    ),
    **dict.fromkeys((0xC0000017, 0xC000009A, 0xC000012D), ("resource.system_memory", "it found no memory")),
    **dict.fromkeys(
        (0xC000007B, 0xC0000135, 0xC0000138, 0xC0000139, 0xC0000142),
        ("extension.dependency_missing", "a library that it needs is missing or does not fit"),
    ),
    0xC000013A: ("cancel.run", "it was interrupted"),
}  # fmt: skip
"""Exit code → kind, and why the process ended."""


def is_ntstatus(code: int) -> bool:
    """Whether an exit code is one with which Windows ends a process; it is printed as a positive or a negative number."""
    return (code & 0xFFFFFFFF) in KIND_BY_NTSTATUS
