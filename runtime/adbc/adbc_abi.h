// The C ABI of ADBC 1.1, as far as a driver needs it: arrow.apache.org/adbc. Layout and names are
// the specification's; a member that only revision 1.1 has is behind one that says so.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/data/arrow_abi.h"

extern "C" {

using AdbcStatusCode = uint8_t;
enum : AdbcStatusCode {
  ADBC_STATUS_OK,
  ADBC_STATUS_UNKNOWN,
  ADBC_STATUS_NOT_IMPLEMENTED,
  ADBC_STATUS_NOT_FOUND,
  ADBC_STATUS_ALREADY_EXISTS,
  ADBC_STATUS_INVALID_ARGUMENT,
  ADBC_STATUS_INVALID_STATE,
  ADBC_STATUS_INVALID_DATA,
  ADBC_STATUS_INTEGRITY,
  ADBC_STATUS_INTERNAL,
  ADBC_STATUS_IO,
  ADBC_STATUS_CANCELLED,
  ADBC_STATUS_TIMEOUT,
};
inline constexpr int ADBC_VERSION_1_0_0 = 1'000'000, ADBC_VERSION_1_1_0 = 1'001'000;

struct AdbcDriver;
struct AdbcError {
  char* message;
  int32_t vendor_code;
  char sqlstate[5];
  void (*release)(AdbcError*);
  void* private_data;  // 1.1, and only where vendor_code says so
  AdbcDriver* private_driver;
};
struct AdbcErrorDetail {
  const char* key;
  const uint8_t* value;
  size_t value_length;
};
struct AdbcDatabase {
  void* private_data;
  AdbcDriver* private_driver;
};
struct AdbcConnection {
  void* private_data;
  AdbcDriver* private_driver;
};
struct AdbcStatement {
  void* private_data;
  AdbcDriver* private_driver;
};
struct AdbcPartitions {
  size_t num_partitions;
  const uint8_t** partitions;
  const size_t* partition_lengths;
  void* private_data;
  void (*release)(AdbcPartitions*);
};

// Of what has options: a database, a connection, a statement.
#define ADBC_OPTION_GETTERS(Kind)                                                               \
  AdbcStatusCode (*Kind##GetOption)(Adbc##Kind*, const char*, char*, size_t*, AdbcError*);      \
  AdbcStatusCode (*Kind##GetOptionBytes)(Adbc##Kind*, const char*, uint8_t*, size_t*,           \
                                         AdbcError*);                                           \
  AdbcStatusCode (*Kind##GetOptionDouble)(Adbc##Kind*, const char*, double*, AdbcError*);       \
  AdbcStatusCode (*Kind##GetOptionInt)(Adbc##Kind*, const char*, int64_t*, AdbcError*);
#define ADBC_OPTION_SETTERS(Kind)                                                               \
  AdbcStatusCode (*Kind##SetOptionBytes)(Adbc##Kind*, const char*, const uint8_t*, size_t,      \
                                         AdbcError*);                                           \
  AdbcStatusCode (*Kind##SetOptionDouble)(Adbc##Kind*, const char*, double, AdbcError*);        \
  AdbcStatusCode (*Kind##SetOptionInt)(Adbc##Kind*, const char*, int64_t, AdbcError*);

struct AdbcDriver {
  void* private_data;
  void* private_manager;
  AdbcStatusCode (*release)(AdbcDriver*, AdbcError*);

  AdbcStatusCode (*DatabaseInit)(AdbcDatabase*, AdbcError*);
  AdbcStatusCode (*DatabaseNew)(AdbcDatabase*, AdbcError*);
  AdbcStatusCode (*DatabaseSetOption)(AdbcDatabase*, const char*, const char*, AdbcError*);
  AdbcStatusCode (*DatabaseRelease)(AdbcDatabase*, AdbcError*);

  AdbcStatusCode (*ConnectionCommit)(AdbcConnection*, AdbcError*);
  AdbcStatusCode (*ConnectionGetInfo)(AdbcConnection*, const uint32_t*, size_t, ArrowArrayStream*,
                                      AdbcError*);
  AdbcStatusCode (*ConnectionGetObjects)(AdbcConnection*, int, const char*, const char*,
                                         const char*, const char**, const char*,
                                         ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionGetTableSchema)(AdbcConnection*, const char*, const char*,
                                             const char*, ArrowSchema*, AdbcError*);
  AdbcStatusCode (*ConnectionGetTableTypes)(AdbcConnection*, ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionInit)(AdbcConnection*, AdbcDatabase*, AdbcError*);
  AdbcStatusCode (*ConnectionNew)(AdbcConnection*, AdbcError*);
  AdbcStatusCode (*ConnectionSetOption)(AdbcConnection*, const char*, const char*, AdbcError*);
  AdbcStatusCode (*ConnectionReadPartition)(AdbcConnection*, const uint8_t*, size_t,
                                            ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionRelease)(AdbcConnection*, AdbcError*);
  AdbcStatusCode (*ConnectionRollback)(AdbcConnection*, AdbcError*);

  AdbcStatusCode (*StatementBind)(AdbcStatement*, ArrowArray*, ArrowSchema*, AdbcError*);
  AdbcStatusCode (*StatementBindStream)(AdbcStatement*, ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*StatementExecuteQuery)(AdbcStatement*, ArrowArrayStream*, int64_t*, AdbcError*);
  AdbcStatusCode (*StatementExecutePartitions)(AdbcStatement*, ArrowSchema*, AdbcPartitions*,
                                               int64_t*, AdbcError*);
  AdbcStatusCode (*StatementGetParameterSchema)(AdbcStatement*, ArrowSchema*, AdbcError*);
  AdbcStatusCode (*StatementNew)(AdbcConnection*, AdbcStatement*, AdbcError*);
  AdbcStatusCode (*StatementPrepare)(AdbcStatement*, AdbcError*);
  AdbcStatusCode (*StatementRelease)(AdbcStatement*, AdbcError*);
  AdbcStatusCode (*StatementSetOption)(AdbcStatement*, const char*, const char*, AdbcError*);
  AdbcStatusCode (*StatementSetSqlQuery)(AdbcStatement*, const char*, AdbcError*);
  AdbcStatusCode (*StatementSetSubstraitPlan)(AdbcStatement*, const uint8_t*, size_t, AdbcError*);

  // 1.1: not there where the caller asks for 1.0.
  int (*ErrorGetDetailCount)(const AdbcError*);
  AdbcErrorDetail (*ErrorGetDetail)(const AdbcError*, int);
  const AdbcError* (*ErrorFromArrayStream)(ArrowArrayStream*, AdbcStatusCode*);

  ADBC_OPTION_GETTERS(Database)
  ADBC_OPTION_SETTERS(Database)

  AdbcStatusCode (*ConnectionCancel)(AdbcConnection*, AdbcError*);
  ADBC_OPTION_GETTERS(Connection)
  AdbcStatusCode (*ConnectionGetStatistics)(AdbcConnection*, const char*, const char*, const char*,
                                            char, ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionGetStatisticNames)(AdbcConnection*, ArrowArrayStream*, AdbcError*);
  ADBC_OPTION_SETTERS(Connection)

  AdbcStatusCode (*StatementCancel)(AdbcStatement*, AdbcError*);
  AdbcStatusCode (*StatementExecuteSchema)(AdbcStatement*, ArrowSchema*, AdbcError*);
  ADBC_OPTION_GETTERS(Statement)
  ADBC_OPTION_SETTERS(Statement)
};
#undef ADBC_OPTION_GETTERS
#undef ADBC_OPTION_SETTERS

// What a driver manager asks the library for. `driver` is an AdbcDriver as long as the version's.
using AdbcDriverInitFunc = AdbcStatusCode(int version, void* driver, AdbcError*);
}
