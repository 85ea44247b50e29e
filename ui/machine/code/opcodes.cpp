// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/code/opcodes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>

namespace klineage::ui {

namespace {

using C = OpcodeClass;
using Words = std::map<std::string, OpcodeClass, std::less<>>;

constexpr std::array<OpcodeClassRow, opcodeClassCount> classTable{{
    {"Warpgroup product", "HGMMA, QGMMA · wgmma"},
    {"Warp product", "HMMA, IMMA · mma"},
    {"Tensor copy (TMA)", "UTMALDG, UTMASTG, UBLKCP · cp.async.bulk"},
    {"Asynchronous copy", "LDGSTS · cp.async"},
    {"Global load", "LDG, LD · ld.global"},
    {"Global store", "STG, ST · st.global"},
    {"Shared load", "LDS, LDSM · ld.shared, ldmatrix"},
    {"Shared store", "STS, STSM · st.shared, stmatrix"},
    {"Local memory (spills)", "LDL, STL · ld.local, st.local"},
    {"Constant or parameter", "LDC, ULDC · ld.const, ld.param"},
    {"Atomic", "ATOM, RED · atom, red"},
    {"Barrier or fence", "BAR, SYNCS, FENCE · bar, mbarrier, fence"},
    {"Special function", "MUFU · ex2, rcp, sqrt"},
    {"FP32", "FFMA, FADD, FMUL · fma.f32"},
    {"FP16 or BF16", "HFMA2, HADD2 · fma.f16x2"},
    {"FP64", "DFMA, DADD · fma.f64"},
    {"Integer multiply-add", "IMAD · mad.lo, mul.wide"},
    {"Integer or logic", "IADD3, LEA, LOP3, SHF · add.s32, and, shl"},
    {"Conversion", "F2FP, I2F · cvt"},
    {"Move or select", "MOV, SEL, R2UR, S2R · mov, selp"},
    {"Shuffle or vote", "SHFL, VOTE, REDUX · shfl, vote"},
    {"Control flow", "BRA, EXIT, BSSY · bra, ret"},
    {"Other", "NOP and what is not listed"},
}};

void addWords(Words &words, OpcodeClass to, std::initializer_list<const char *> names)
{
    for (const char *name : names)
        words.emplace(name, to);
}

Words makeSassWords()
{
    Words words;
    addWords(words, C::WarpgroupProduct, {"HGMMA", "QGMMA", "IGMMA", "BGMMA"});
    addWords(words, C::WarpProduct, {"HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA"});
    addWords(words, C::TensorCopy,
             {"UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UTMACCTL", "UTMACMDFLUSH", "UBLKCP", "UBLKRED",
              "UBLKPF"});
    addWords(words, C::AsyncCopy, {"LDGSTS"});
    addWords(words, C::GlobalLoad, {"LDG", "LD"});
    addWords(words, C::GlobalStore, {"STG", "ST"});
    addWords(words, C::SharedLoad, {"LDS", "LDSM"});
    addWords(words, C::SharedStore, {"STS", "STSM", "STAS"});
    addWords(words, C::LocalMemory, {"LDL", "STL"});
    addWords(words, C::Constant, {"LDC", "LDCU"});
    addWords(words, C::Atomic, {"ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDAS"});
    addWords(words, C::Barrier,
             {"BAR", "SYNCS", "ARRIVES", "WARPSYNC", "WARPGROUP", "WARPGROUPSET", "MEMBAR", "FENCE", "DEPBAR",
              "LDGDEPBAR", "CGABAR_ARV", "CGABAR_WAIT", "CGABAR_GET", "CGABAR_SET", "ERRBAR", "CGAERRBAR",
              "ACQBULK", "PREEXIT", "NANOSLEEP"});
    addWords(words, C::SpecialFunction, {"MUFU"});
    addWords(words, C::Fp32,
             {"FFMA", "FADD", "FMUL", "FMNMX", "FMNMX3", "FSETP", "FSET", "FCHK", "FRND", "FSWZADD", "FFMA2",
              "FADD2", "FMUL2"});
    addWords(words, C::Fp16, {"HFMA2", "HADD2", "HMUL2", "HMNMX2", "HSETP2", "HSET2", "VHMNMX"});
    addWords(words, C::Fp64, {"DFMA", "DADD", "DMUL", "DSETP", "DMNMX"});
    addWords(words, C::IntegerMultiply, {"IMAD", "IMUL", "IDP", "IDP4A", "XMAD"});
    addWords(words, C::Integer,
             {"IADD", "IADD3", "VIADD", "VIADDMNMX", "VIMNMX", "VIMNMX3", "IMNMX",   "IABS", "LEA",
              "LOP3", "LOP",   "SHF",   "SHL",       "SHR",    "ISETP",   "ISET",    "POPC", "FLO",
              "BREV", "BMSK",  "SGXT",  "PLOP3",     "ISCADD", "LOP32I",  "IADD32I", "PSETP"});
    addWords(words, C::Convert, {"F2FP", "F2F", "F2I", "I2F", "I2FP", "I2I", "F2IP", "I2IP"});
    addWords(words, C::Move,
             {"MOV", "SEL", "FSEL", "PRMT", "R2UR", "S2R", "S2UR", "CS2R", "P2R", "R2P", "B2R", "R2B", "MOVM",
              "UR2UP", "P2UR"});
    addWords(words, C::Shuffle, {"SHFL", "VOTE", "VOTEU", "REDUX", "MATCH", "ELECT"});
    addWords(words, C::Control,
             {"BRA", "BRX", "JMP", "JMX", "CALL", "RET", "EXIT", "KILL", "BPT", "BSSY", "BSYNC", "BREAK",
              "BMOV", "YIELD", "SETMAXREG", "ENDCOLLECTIVE", "COLLECTIVE"});
    return words;
}

Words makePtxWords()
{
    Words words;
    addWords(words, C::WarpProduct, {"mma", "wmma"});
    addWords(words, C::SharedLoad, {"ldmatrix"});
    addWords(words, C::SharedStore, {"stmatrix"});
    addWords(words, C::Atomic, {"atom", "red"});
    addWords(words, C::Barrier,
             {"bar", "barrier", "mbarrier", "membar", "fence", "griddepcontrol", "nanosleep"});
    addWords(words, C::SpecialFunction, {"ex2", "lg2", "sin", "cos", "tanh", "rcp", "sqrt", "rsqrt"});
    addWords(words, C::Integer,
             {"and", "or", "xor", "not", "shl", "shr", "shf", "lop3", "bfe", "bfi", "popc", "clz", "brev",
              "bfind", "cnot", "szext", "bmsk", "sad", "fns"});
    addWords(words, C::Convert, {"cvt"});
    addWords(words, C::Move, {"mov", "selp", "prmt", "cvta", "mapa", "getctarank", "slct", "isspacep"});
    addWords(words, C::Shuffle, {"shfl", "vote", "match", "redux", "activemask", "elect"});
    addWords(words, C::Control, {"bra", "brx", "call", "ret", "exit", "trap", "brkpt", "setmaxnreg"});
    return words;
}

bool hasPart(std::string_view opcode, std::string_view part)
{
    for (std::size_t begin = 0; begin <= opcode.size();) {
        const std::size_t end = std::min(opcode.find_first_of(".:", begin), opcode.size());
        if (opcode.substr(begin, end - begin) == part)
            return true;
        begin = end + 1;
    }
    return false;
}

OpcodeClass memoryClass(std::string_view opcode, bool isLoad)
{
    if (hasPart(opcode, "shared"))
        return isLoad ? C::SharedLoad : C::SharedStore;
    if (hasPart(opcode, "local"))
        return C::LocalMemory;
    if (hasPart(opcode, "const") || hasPart(opcode, "param"))
        return C::Constant;
    return isLoad ? C::GlobalLoad : C::GlobalStore;
}

/// Of fma, add, mul and their like, which are said by their type.
OpcodeClass arithmeticClass(std::string_view word, std::string_view opcode)
{
    if (hasPart(opcode, "f16") || hasPart(opcode, "f16x2") || hasPart(opcode, "bf16")
        || hasPart(opcode, "bf16x2"))
        return C::Fp16;
    if (hasPart(opcode, "f32") || hasPart(opcode, "f32x2"))
        return C::Fp32;
    if (hasPart(opcode, "f64"))
        return C::Fp64;
    for (const char *multiply : {"mul", "mad", "mul24", "mad24", "dp4a", "dp2a"}) {
        if (word == multiply)
            return C::IntegerMultiply;
    }
    return C::Integer;
}

OpcodeClass ptxClass(std::string_view opcode)
{
    static const Words words = makePtxWords();
    const std::string_view word = opcode.substr(0, opcode.find('.'));
    const bool closesGroup =
        hasPart(opcode, "commit_group") || hasPart(opcode, "wait_group") || hasPart(opcode, "wait_all");
    if (word == "wgmma")
        return hasPart(opcode, "mma_async") ? C::WarpgroupProduct : C::Barrier;
    if (word == "cp" && closesGroup)
        return C::Barrier;
    if (word == "cp")
        return hasPart(opcode, "bulk")       ? C::TensorCopy
               : hasPart(opcode, "mbarrier") ? C::Barrier
                                             : C::AsyncCopy;
    if (word == "ld" || word == "ldu")
        return memoryClass(opcode, true);
    if (word == "st")
        return memoryClass(opcode, false);
    if (word == "wmma" && !hasPart(opcode, "mma"))
        return memoryClass(opcode, hasPart(opcode, "load"));
    if (const auto found = words.find(word); found != words.end())
        return found->second;
    for (const char *arithmetic :
         {"fma",  "add", "sub",      "mul",   "mad",  "min",  "max",  "neg",   "abs",   "div",  "rem",
          "setp", "set", "copysign", "testp", "addc", "subc", "madc", "mul24", "mad24", "dp4a", "dp2a"}) {
        if (word == arithmetic)
            return arithmeticClass(word, opcode);
    }
    return C::Other;
}

/// Instructions of the uniform datapath have a U before the name of the others.
OpcodeClass sassClass(std::string_view opcode)
{
    static const Words words = makeSassWords();
    std::string_view word = opcode.substr(0, opcode.find('.'));
    auto found = words.find(word);
    if (found == words.end() && word.starts_with('U'))
        found = words.find(word.substr(1));
    return found == words.end() ? C::Other : found->second;
}

bool isWordCharacter(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$' || c == '%';
}

/// From the opcode on: numbers and labels.
void addOperands(std::string_view text, std::size_t begin, std::vector<CodeSpan> &spans)
{
    for (std::size_t at = begin; at < text.size();) {
        if (!isWordCharacter(text[at])) {
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < text.size() && isWordCharacter(text[end]))
            ++end;
        const bool isLabel = text[at] == '$' || text.substr(at, 3) == ".L_";
        if (isLabel || std::isdigit(static_cast<unsigned char>(text[at])))
            spans.push_back({at, end - at, isLabel ? CodeToken::Label : CodeToken::Number});
        at = end;
    }
}

std::size_t skipSpaces(std::string_view text, std::size_t at)
{
    while (at < text.size() && text[at] == ' ')
        ++at;
    return at;
}

} // namespace

std::span<const OpcodeClassRow, opcodeClassCount> opcodeClasses()
{
    return classTable;
}

std::vector<CodeSpan> codeSpans(std::string_view text)
{
    std::vector<CodeSpan> spans;
    std::size_t at = skipSpaces(text, 0);
    if (at == text.size())
        return spans;
    if (text.back() == ':' && text.find(' ', at) == std::string_view::npos) {
        spans.push_back({at, text.size() - at, CodeToken::Label});
        return spans;
    }
    if (text[at] == '@') {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        spans.push_back({at, end - at, CodeToken::Predicate});
        at = skipSpaces(text, end);
    }
    const std::size_t end = std::min(text.find_first_of(" ;", at), text.size());
    if (end > at)
        spans.push_back({at, end - at, CodeToken::Opcode});
    addOperands(text, end, spans);
    return spans;
}

std::string_view opcodeOf(std::string_view text)
{
    for (const CodeSpan &span : codeSpans(text)) {
        if (span.token == CodeToken::Opcode)
            return text.substr(span.begin, span.length);
    }
    return {};
}

OpcodeClass classOf(CodeForm form, std::string_view opcode)
{
    return form == CodeForm::Sass ? sassClass(opcode) : ptxClass(opcode);
}

} // namespace klineage::ui
