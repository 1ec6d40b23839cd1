//! Symbolic names of objects: MIB-II (RFC 1213), IF-MIB (RFC 2863), HOST-RESOURCES-MIB (RFC 2790), and of UCD-SNMP-MIB what
//! is graphed.

/// The whole object, with its instance.
pub const SYS_UP_TIME: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 3, 0];
/// ifDescr
pub const IF_DESCR: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2];
/// ifType
pub const IF_TYPE: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 3];
/// ifPhysAddress
pub const IF_PHYS_ADDRESS: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 6];
/// ifName
pub const IF_NAME: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1];
/// ipAdEntIfIndex
pub const IP_AD_ENT_IF_INDEX: &[u32] = &[1, 3, 6, 1, 2, 1, 4, 20, 1, 2];
/// ifInOctets
pub const IF_IN_OCTETS: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 10];
/// ifOutOctets
pub const IF_OUT_OCTETS: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 16];
/// ifHCInOctets
pub const IF_HC_IN_OCTETS: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6];
/// ifHCOutOctets
pub const IF_HC_OUT_OCTETS: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10];

/// A symbolic name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The object without its instance.
    pub oid: Vec<u32>,
    /// Whether its only instance is 0.
    pub is_scalar: bool,
}

/// Objects below one OID.
struct Group {
    parent: &'static [u32],
    /// The number of the first name; the others follow without a gap, `-` where there is none.
    first: u32,
    is_scalar: bool,
    names: &'static str,
}

const fn scalars(parent: &'static [u32], first: u32, names: &'static str) -> Group {
    Group { parent, first, is_scalar: true, names }
}

const fn columns(parent: &'static [u32], first: u32, names: &'static str) -> Group {
    Group { parent, first, is_scalar: false, names }
}

const GROUPS: &[Group] = &[
    scalars(
        &[1, 3, 6, 1, 2, 1, 1],
        1,
        "sysDescr sysObjectID sysUpTime sysContact sysName sysLocation sysServices",
    ),
    scalars(&[1, 3, 6, 1, 2, 1, 1], 3, "sysUptime"),
    scalars(&[1, 3, 6, 1, 2, 1, 2], 1, "ifNumber"),
    columns(
        &[1, 3, 6, 1, 2, 1, 2, 2, 1],
        1,
        "ifIndex ifDescr ifType ifMtu ifSpeed ifPhysAddress ifAdminStatus ifOperStatus ifLastChange ifInOctets \
         ifInUcastPkts ifInNUcastPkts ifInDiscards ifInErrors ifInUnknownProtos ifOutOctets ifOutUcastPkts \
         ifOutNUcastPkts ifOutDiscards ifOutErrors ifOutQLen ifSpecific",
    ),
    columns(&[1, 3, 6, 1, 2, 1, 2, 2, 1], 7, "ifAdminHack ifOperHack"),
    columns(
        &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1],
        1,
        "ifName ifInMulticastPkts ifInBroadcastPkts ifOutMulticastPkts ifOutBroadcastPkts ifHCInOctets ifHCInUcastPkts \
         ifHCInMulticastPkts ifHCInBroadcastPkts ifHCOutOctets ifHCOutUcastPkts ifHCOutMulticastPkts \
         ifHCOutBroadcastPkts ifLinkUpDownTrapEnable ifHighSpeed ifPromiscuousMode ifConnectorPresent ifAlias \
         ifCounterDiscontinuityTime",
    ),
    scalars(
        &[1, 3, 6, 1, 2, 1, 4],
        1,
        "ipForwarding ipDefaultTTL ipInReceives ipInHdrErrors ipInAddrErrors ipForwDatagrams ipInUnknownProtos \
         ipInDiscards ipInDelivers ipOutRequests ipOutDiscards ipOutNoRoutes ipReasmTimeout ipReasmReqds ipReasmOKs \
         ipReasmFails ipFragOKs ipFragFails ipFragCreates - - - ipRoutingDiscards",
    ),
    columns(
        &[1, 3, 6, 1, 2, 1, 4, 20, 1],
        1,
        "ipAdEntAddr ipAdEntIfIndex ipAdEntNetMask ipAdEntBcastAddr ipAdEntReasmMaxSize",
    ),
    columns(
        &[1, 3, 6, 1, 2, 1, 4, 21, 1],
        1,
        "ipRouteDest ipRouteIfIndex ipRouteMetric1 ipRouteMetric2 ipRouteMetric3 ipRouteMetric4 ipRouteNextHop \
         ipRouteType ipRouteProto ipRouteAge ipRouteMask",
    ),
    columns(
        &[1, 3, 6, 1, 2, 1, 4, 22, 1],
        1,
        "ipNetToMediaIfIndex ipNetToMediaPhysAddress ipNetToMediaNetAddress ipNetToMediaType",
    ),
    scalars(
        &[1, 3, 6, 1, 2, 1, 5],
        1,
        "icmpInMsgs icmpInErrors icmpInDestUnreachs icmpInTimeExcds icmpInParmProbs icmpInSrcQuenchs icmpInRedirects \
         icmpInEchos icmpInEchoReps icmpInTimestamps icmpInTimestampReps icmpInAddrMasks icmpInAddrMaskReps icmpOutMsgs \
         icmpOutErrors icmpOutDestUnreachs icmpOutTimeExcds icmpOutParmProbs icmpOutSrcQuenchs icmpOutRedirects \
         icmpOutEchos icmpOutEchoReps icmpOutTimestamps icmpOutTimestampReps icmpOutAddrMasks icmpOutAddrMaskReps",
    ),
    scalars(
        &[1, 3, 6, 1, 2, 1, 6],
        1,
        "tcpRtoAlgorithm tcpRtoMin tcpRtoMax tcpMaxConn tcpActiveOpens tcpPassiveOpens tcpAttemptFails tcpEstabResets \
         tcpCurrEstab tcpInSegs tcpOutSegs tcpRetransSegs - tcpInErrs tcpOutRsts",
    ),
    scalars(&[1, 3, 6, 1, 2, 1, 7], 1, "udpInDatagrams udpNoPorts udpInErrors udpOutDatagrams"),
    scalars(
        &[1, 3, 6, 1, 2, 1, 11],
        1,
        "snmpInPkts snmpOutPkts snmpInBadVersions snmpInBadCommunityNames snmpInBadCommunityUses snmpInASNParseErrs - \
         snmpInTooBigs snmpInNoSuchNames snmpInBadValues snmpInReadOnlys snmpInGenErrs snmpInTotalReqVars \
         snmpInTotalSetVars snmpInGetRequests snmpInGetNexts snmpInSetRequests snmpInGetResponses snmpInTraps \
         snmpOutTooBigs snmpOutNoSuchNames snmpOutBadValues - snmpOutGenErrs snmpOutGetRequests snmpOutGetNexts \
         snmpOutSetRequests snmpOutGetResponses snmpOutTraps snmpEnableAuthenTraps",
    ),
    scalars(
        &[1, 3, 6, 1, 2, 1, 25, 1],
        1,
        "hrSystemUptime hrSystemDate hrSystemInitialLoadDevice hrSystemInitialLoadParameters hrSystemNumUsers \
         hrSystemProcesses hrSystemMaxProcesses",
    ),
    scalars(&[1, 3, 6, 1, 2, 1, 25, 2], 2, "hrMemorySize"),
    columns(
        &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1],
        1,
        "hrStorageIndex hrStorageType hrStorageDescr hrStorageAllocationUnits hrStorageSize hrStorageUsed \
         hrStorageAllocationFailures",
    ),
    columns(&[1, 3, 6, 1, 2, 1, 25, 3, 3, 1], 1, "hrProcessorFrwID hrProcessorLoad"),
    columns(&[1, 3, 6, 1, 2, 1, 25, 5, 1, 1], 1, "hrSWRunPerfCPU hrSWRunPerfMem"),
    scalars(
        &[1, 3, 6, 1, 4, 1, 2021, 4],
        3,
        "memTotalSwap memAvailSwap memTotalReal memAvailReal memTotalSwapTXT memAvailSwapTXT memTotalRealTXT \
         memAvailRealTXT memTotalFree memMinimumSwap memShared memBuffer memCached",
    ),
    columns(
        &[1, 3, 6, 1, 4, 1, 2021, 9, 1],
        1,
        "dskIndex dskPath dskDevice dskMinimum dskMinPercent dskTotal dskAvail dskUsed dskPercent dskPercentNode",
    ),
    columns(&[1, 3, 6, 1, 4, 1, 2021, 10, 1], 1, "laIndex laNames laLoad laConfig laLoadInt laLoadFloat"),
    scalars(
        &[1, 3, 6, 1, 4, 1, 2021, 11],
        3,
        "ssSwapIn ssSwapOut ssIOSent ssIOReceive ssSysInterrupts ssSysContext ssCpuUser ssCpuSystem ssCpuIdle",
    ),
    scalars(
        &[1, 3, 6, 1, 4, 1, 2021, 11],
        50,
        "ssCpuRawUser ssCpuRawNice ssCpuRawSystem ssCpuRawIdle ssCpuRawWait ssCpuRawKernel ssCpuRawInterrupt \
         ssIORawSent ssIORawReceived ssRawInterrupts ssRawContexts ssCpuRawSoftIRQ ssRawSwapIn ssRawSwapOut",
    ),
];

/// The object of that name.
pub fn find(name: &str) -> Option<Name> {
    GROUPS.iter().find_map(|group| {
        let place = group.names.split_ascii_whitespace().position(|known| known == name && known != "-")?;
        let mut oid = group.parent.to_vec();
        oid.push(group.first + place as u32);
        Some(Name { oid, is_scalar: group.is_scalar })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_numbers_of_their_rfcs() {
        let check = |name: &str, want: &str| {
            let oid = find(name).unwrap_or_else(|| panic!("{name}")).oid;
            assert_eq!(oid.iter().map(u32::to_string).collect::<Vec<_>>().join("."), want, "{name}");
        };
        check("ifInOctets", "1.3.6.1.2.1.2.2.1.10");
        check("ifOutQLen", "1.3.6.1.2.1.2.2.1.21");
        check("ifOperHack", "1.3.6.1.2.1.2.2.1.8");
        check("ifHCOutOctets", "1.3.6.1.2.1.31.1.1.1.10");
        check("ifAlias", "1.3.6.1.2.1.31.1.1.1.18");
        check("ipRoutingDiscards", "1.3.6.1.2.1.4.23");
        check("ipAdEntIfIndex", "1.3.6.1.2.1.4.20.1.2");
        check("icmpOutAddrMaskReps", "1.3.6.1.2.1.5.26");
        check("tcpOutRsts", "1.3.6.1.2.1.6.15");
        check("snmpEnableAuthenTraps", "1.3.6.1.2.1.11.30");
        check("hrStorageUsed", "1.3.6.1.2.1.25.2.3.1.6");
        check("hrProcessorLoad", "1.3.6.1.2.1.25.3.3.1.2");
        check("memAvailReal", "1.3.6.1.4.1.2021.4.6");
        check("laLoadInt", "1.3.6.1.4.1.2021.10.1.5");
        check("ssCpuRawIdle", "1.3.6.1.4.1.2021.11.53");
        assert_eq!([find("-"), find("foo")], [None, None]);
    }
}
