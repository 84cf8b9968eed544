//! Words that occur in most texts, the most frequent first.
//!
//! Only the approximate rank matters: the feature weights derive from it. The function words of
//! other languages follow the first English ones.

pub(super) const FREQUENT_WORDS: &str = "
the of and to a in is it you that he was for on are with as i his they be at one have this from or had
by not but what all were we when your can said there use an each which she do how their if will up other
about out many then them these so some der die das und ist nicht von mit den ein eine zu auf für dem des
sich als auch im es werden aus er hat dass sie nach bei um le la les et de un une du est que qui dans
pour pas sur plus par au avec ce il ne se en aux ou sont el los las y del una por con para su al lo como
más pero sus o este di che è non si da della sono nel alla gli dei os em uma com não mais dos na ao het
een van dat niet op te zijn met voor maar om ook aan att det som på är av för med till inte ett w z nie
się jest że jak и в не на что я с он как это по но из у за то так же от her would make like him into
time has look two more write go see number no way could people my than first been call who its now find
long down day did get come made may part over new sound take only little work know place year live me
back give most very after thing our just name good sentence man think say great where help through much
before line right too mean old any same tell boy follow came want show also around form three small set
put end does another well large must big even such because turn here why ask went men read need land
different home us move try kind hand picture again change off play air away animal house point page
letter mother answer found study still learn should world high every near add food between own below
country plant last school father keep tree never start city earth eye light thought head under story saw
left few while along might close something seem next hard open example begin life always those both
paper together got group often run important until children side feet car mile night walk white sea
began grow took river four carry state once book hear stop without second later miss idea enough eat
face watch far really almost let above girl sometimes mountain cut young talk soon list song being leave
family body music color stand sun question fish area mark dog horse bird problem complete room knew
since ever piece told usually friends easy heard order red door sure become top ship across today during
short better best however low hours black products happened whole measure remember early reached listen
wind rock space covered fast several hold himself toward five step morning passed true hundred against
pattern table north slowly money map farm draw voice seen cold plan notice south sing war ground fall
king town unit figure certain field travel wood fire upon done english road half ten fly gave box
finally wait correct quickly person became shown minutes strong stars front feel fact street decided
contain course surface produce building ocean class note nothing rest carefully inside stay green known
island week less machine base ago stood plane system behind ran round boat game force brought understand
warm common bring explain dry though language shape deep thousands yes clear yet government filled heat
full hot check object am rule among power cannot able six size dark ball material special heavy fine
pair circle include built matter square perhaps bill felt suddenly test direction center ready anything
divided general energy subject europe region return believe members picked simple mind love cause rain
train blue wish drop developed window difference distance heart sit sum summer wall probably sat main
winter wide written length reason kept interest arms brother race present beautiful store job edge past
sign record finished discovered happy beside gone sky glass million west lay weather root meet third
months raised represent soft whether clothes flowers shall teacher held describe drive cross speak solve
appear son either sleep factors result ride care floor hill pushed buy century outside everything tall
already instead phrase bed copy free hope spring case nation quite type themselves temperature bright
lead everyone method section within data file value user information service company based using used
available process report provide per following including management business software web site internet
email computer network server code version function error message application project support request
response default option text key click update create select search view access content document model
market price cost policy public law court president american national international university research
development program community health education social economic political history science member team
player season film series album band club league percent total average rate level increase term local
control issue current recent possible likely similar various according especially particularly although
therefore thus hence whose whom itself yourself myself ourselves anyone someone nobody none neither nor
unless despite onto via etc eg ie mr mrs dr monday tuesday wednesday thursday friday saturday sunday
january february march april june july august september october november december ll ve re s t d m don
doesn didn isn wasn aren won allow apply configuration connect contains define delete description
details device directory display enable enter event execute folder format id index input install
instance item link load log login mode module multiple node output package parameter password path port
print property query remove save script security send session setting source specific specify standard
status string structure target task template token tool upload url valid variable
";
