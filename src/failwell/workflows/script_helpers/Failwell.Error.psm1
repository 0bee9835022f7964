# Raises a typed error from a PowerShell script that failwell runs.
#
#   Import-Module ./Failwell.Error.psm1
#   Write-FailwellError -Kind external.git.drift -Message "the branch moved" -Details @{ branch = "main" }
#
# It writes the error and returns the path of the file; how the script ends is its own affair.

function Write-FailwellError {
    [CmdletBinding()]
    [OutputType([string])]
    param(
        [Parameter(Mandatory)] [ValidateNotNullOrEmpty()] [string] $Kind,
        [Parameter(Mandatory)] [ValidateNotNullOrEmpty()] [string] $Message,
        [System.Collections.IDictionary] $Details
    )

    $path = if ($env:FAILWELL_ERROR_OUT) { $env:FAILWELL_ERROR_OUT } else { $env:CONDUCTOR_ERROR_OUT }
    if (-not $path) {
        throw 'FAILWELL_ERROR_OUT is not set: run this script as a step of `failwell run`'
    }
    $wire = [ordered]@{ failwell_error = $true; kind = $Kind; message = $Message }
    if ($null -ne $Details) {
        $wire['details'] = $Details
    }
    $json = ConvertTo-Json -InputObject $wire -Depth 16 -Compress
    $draft = "$path.$PID.tmp"
    [System.IO.File]::WriteAllText($draft, $json, [System.Text.UTF8Encoding]::new($false))
    Move-Item -LiteralPath $draft -Destination $path -Force
    $path
}

Export-ModuleMember -Function Write-FailwellError
