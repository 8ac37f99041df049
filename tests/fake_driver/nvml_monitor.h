/* Constants, for what monitors show and gpuledger does not ask for. Part of nvml.c, after its devices. */
#define CONSTANT(name, value) DEVICE(name, unsigned *into) { BEGIN(1, handle); *into = (value); return done(SUCCESS); }
#define CONSTANT_OF(name, value) \
    DEVICE(name, unsigned which, unsigned *into) { (void)which; BEGIN(1, handle); *into = (value); return done(SUCCESS); }
#define PAIR(name, first, second) \
    DEVICE(name, unsigned *one, unsigned *two) { BEGIN(1, handle); *one = (first); *two = (second); return done(SUCCESS); }
CONSTANT(nvmlDeviceGetPowerUsage, 98000)
CONSTANT(nvmlDeviceGetPowerManagementLimit, 700000)
CONSTANT(nvmlDeviceGetEnforcedPowerLimit, 700000)
CONSTANT(nvmlDeviceGetFanSpeed, 0)
CONSTANT(nvmlDeviceGetPersistenceMode, 1)
CONSTANT(nvmlDeviceGetComputeMode, 0)
CONSTANT(nvmlDeviceGetPerformanceState, 0)
CONSTANT(nvmlDeviceGetDisplayMode, 0)
CONSTANT(nvmlDeviceGetDisplayActive, 0)
CONSTANT(nvmlDeviceGetArchitecture, 9)
CONSTANT(nvmlDeviceGetBusType, 2)
CONSTANT_OF(nvmlDeviceGetTemperature, 41)
CONSTANT_OF(nvmlDeviceGetTemperatureThreshold, 90)
CONSTANT_OF(nvmlDeviceGetClockInfo, 1410)
CONSTANT_OF(nvmlDeviceGetMaxClockInfo, 1980)
CONSTANT_OF(nvmlDeviceGetPcieThroughput, 1024)
PAIR(nvmlDeviceGetEncoderUtilization, 0, 100000)
PAIR(nvmlDeviceGetDecoderUtilization, 0, 100000)
PAIR(nvmlDeviceGetCudaComputeCapability, 9, 0)
PAIR(nvmlDeviceGetEccMode, 0, 0)
DEVICE(nvmlDeviceGetTotalEnergyConsumption, unsigned long long *millijoules) {
    BEGIN(1, handle);
    *millijoules = now_us() / 1000;
    return done(SUCCESS);
}
DEVICE(nvmlDeviceGetTotalEccErrors, unsigned kind, unsigned counter, unsigned long long *count) {
    (void)kind, (void)counter, (void)count;
    BEGIN(1, handle);
    return done(NOT_SUPPORTED);
}
DEVICE(nvmlDeviceGetDriverModel_v2, unsigned *current, unsigned *pending) {
    (void)current, (void)pending;
    BEGIN(1, handle);
    return done(NOT_SUPPORTED);
}
