// rndn-libdevice: the functions of functions.h from NVIDIA's libdevice bitcode as PTX. The only program that uses LLVM.
//
// What it does: reads the bitcode, keeps the wanted functions and what they call, settles libdevice's questions about the target (__nvvm_reflect:
// denormal numbers are kept), optimises, and writes PTX 6.0 for sm_60, which every later target takes. Multiplications and additions are never
// contracted beyond what libdevice itself says, so that all assemblers of the PTX give the same bits.
// Usage: rndn-libdevice BITCODE [-o FILE]. Exit: 0; 1 BITCODE is at fault; 2 wrong usage; 3 FILE cannot be written; 70 LLVM lacks NVPTX.
#include <llvm/ADT/StringSet.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <cstring>
#include <memory>
#include <string>

#include "libraries/base/report/version.h"
#include "libraries/base/system/files.h"
#include "libraries/libdevice/functions.h"

namespace {

int fail(int code, const std::string& why) {
  llvm::errs() << "rndn-libdevice: " << why << "\n";
  return code;
}

// Only the wanted functions stay visible; the others go when nothing calls them. Returns the first that is missing, or "".
std::string keep_wanted(llvm::Module& module) {
  llvm::StringSet<> wanted;
  for (std::string_view name : rndn::libdevice::function_names)
    for (const char* suffix : {"", "f"}) {
      const std::string full = std::string(name) + suffix;
      const llvm::Function* f = module.getFunction(full);
      if (!f || f->isDeclaration()) return full;
      wanted.insert(full);
    }
  for (llvm::Function& f : module)
    if (!f.isDeclaration() && !wanted.contains(f.getName())) f.setLinkage(llvm::GlobalValue::InternalLinkage);
  for (llvm::GlobalVariable& v : module.globals())
    if (!v.isDeclaration()) v.setLinkage(llvm::GlobalValue::InternalLinkage);
  return {};
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  machine.registerPassBuilderCallbacks(builder);  // __nvvm_reflect
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

}  // namespace

int main(int argc, char** argv) {
  const char *bitcode = nullptr, *out = "-";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "-o") == 0 && i + 1 < argc)
      out = argv[++i];
    else if (std::strcmp(argv[i], "--help") == 0)
      return llvm::outs() << "usage: rndn-libdevice BITCODE [-o FILE]\nThe math functions of libdevice.10.bc as PTX.\n",
             0;
    else if (std::strcmp(argv[i], "--version") == 0)
      return llvm::outs() << "rndn-libdevice " << rndn::version() << "\n", 0;
    else if (argv[i][0] == '-' && argv[i][1] != '\0')
      return fail(2, std::string("unknown flag `") + argv[i] + "`; usage: rndn-libdevice BITCODE [-o FILE]");
    else if (!bitcode)
      bitcode = argv[i];
    else
      return fail(2, "more than one BITCODE");
  }
  if (!bitcode) return fail(2, "usage: rndn-libdevice BITCODE [-o FILE]");

  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  const std::unique_ptr<llvm::Module> module = llvm::parseIRFile(bitcode, problem, context);
  if (!module) return fail(1, std::string(bitcode) + ": " + problem.getMessage().str());
  if (const std::string missing = keep_wanted(*module); !missing.empty())
    return fail(1, std::string(bitcode) + " has no function `" + missing + "`");

  const std::string triple = "nvptx64-nvidia-cuda";
  std::string why;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, why);
  if (!target) return fail(70, why);
  const std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, "sm_60", "+ptx60", llvm::TargetOptions(), llvm::None, llvm::None, llvm::CodeGenOpt::Aggressive));
  if (!machine) return fail(70, "LLVM has no target " + triple);
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  module->addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", 0u);
  optimise(*module, *machine);

  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CGFT_AssemblyFile))
    return fail(70, "LLVM writes no PTX");
  passes.run(*module);
  const rndn::Result<void> written = rndn::write_file(out, {text.data(), text.size()});
  return written ? 0 : fail(written.error().exit_code(), written.error().message);
}
