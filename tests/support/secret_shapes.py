"""Two hundred ways in which a secret gets onto a command line, into a variable, a URL, a header or a configuration.

`V` stands for the secret. Lines are split as a shell would.
"""

from __future__ import annotations

V = "Hunter2x9Qz"

_OPTIONS = """
--password --passwd --passphrase --pwd --pw --pass --db-pass --smtp-pass --dbpass --db_pass --ftp-pass --admin-pass --redis-pass --proxy-pass
--rootpass --userpass --mqtt-pass --imap-pass --secret --client-secret --clientsecret --app-secret --shared-secret --webhook-secret
--jwt-secret --secret-key --secretkey --signing-secret --mysecret --totp-secret --api-key --apikey --api_key --access-key --private-key
--license-key --encryption-key --master-key --account-key --token --api-token --access-token --auth-token --refresh-token --bot-token
--hub-token --hf-token --hf_token --id-token --session-token --bearer --bearer-token --auth --credentials --creds --dsn --connection-string
--cookie --session-id --sas --sas-token --pat --github-pat --db.password --wandb-api-key --webhook --jwt --authtoken --accesstoken --passcode
--storepass --keypass --pgpassword --keystore-password --truststorePassword --clientSecret --apiKey --dbPassword
""".split()
_VARIABLES = """
MYSECRET APP_SECRET SECRET_KEY DJANGO_SECRET_KEY DB_PASS DBPASS SMTP_PASS PGPASSWORD MYSQL_PWD REDIS_PASSWD API_KEY OPENAI_API_KEY ANTHROPIC_API_KEY
WANDB_API_KEY HF_TOKEN HUGGING_FACE_HUB_TOKEN GITHUB_TOKEN GH_PAT CI_JOB_TOKEN NPM_TOKEN PYPI_TOKEN AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
AZURE_CLIENT_SECRET DATABRICKS_TOKEN VAULT_TOKEN XAI_API_KEY JWT BEARER COOKIE SESSION_ID SSH_PASSPHRASE GOOGLE_CREDS BASIC_AUTH STORAGE_SAS
CLIENTSECRET APIKEY USERPASS ROOTPASSWORD MY_PASSWORD_2 SLACK_WEBHOOK SENTRY_DSN
""".split()

_LINES = f"""
curl -ubob:{V} http://h
curl -u bob:{V} http://h
curl --user bob:{V} http://h
curl --user=bob:{V} http://h
curl -U proxy:{V} http://h
curl --proxy-user p:{V} http://h
curl -H 'Authorization: Bearer {V}' http://h
curl -H 'Authorization: Basic {V}' http://h
curl -H 'X-Api-Key: {V}' http://h
curl -H 'X-Auth-Token: {V}' http://h
curl -H 'X-Vault-Token: {V}' http://h
curl -H 'PRIVATE-TOKEN: {V}' http://h
curl -H 'Cookie: session={V}' http://h
curl -H 'Set-Cookie: sid={V}; Path=/' http://h
curl -H 'Proxy-Authorization: Basic {V}' http://h
curl -H 'X-Amz-Security-Token: {V}' http://h
curl -b session={V} http://h
curl --cookie 'sid={V}' http://h
curl -d 'user=me&password={V}' http://h
curl -d '{{"password": "{V}"}}' http://h
curl --oauth2-bearer {V} http://h
smbclient -U u%{V} //h/share
smbclient --user=u%{V} //h/share
smbclient -Uu%{V} //h/share
mysql -u root -p{V} db
mysql --password={V} db
mysqldump -h h -p{V} db
mariadb -p{V} db
7z x -p{V} a.7z
redis-cli -a {V}
redis-cli --pass {V}
mongosh -p {V}
mongosh -u me -p {V}
sshpass -p {V} ssh h
sshpass -p{V} ssh h
docker login -u me -p {V}
docker login --password {V}
podman login -p {V}
ldapsearch -x -w {V}
sqlcmd -S h -P {V}
unzip -P {V} a.zip
zip -P {V} a.zip b
openssl rsa -passin pass:{V}
openssl enc -k {V}
openssl enc -pass pass:{V}
keytool -storepass {V}
gpg --passphrase {V}
wget --password={V} http://h
wget --http-password={V} http://h
wget --http-passwd={V} http://h
wget --header='Authorization: Bearer {V}' http://h
http -a me:{V} http://h
http --auth me:{V} http://h
psql postgresql://me:{V}@h/db
psql 'host=h user=me password={V}'
git clone https://me:{V}@h/x.git
git clone https://oauth2:{V}@h/x.git
git clone https://{V}{V}@h/x.git
prog amqp://u:{V}@h
prog amqp://:{V}@h
prog redis://:{V}@h:6379/0
prog mongodb+srv://u:{V}@h
prog ftp://u:{V}@h/f
prog smb://u:{V}@h/f
prog 'https://h/x?password={V}'
prog 'https://h/x?a=1&token={V}&b=2'
prog 'https://h/x?api_key={V}#f'
prog 'https://h/x?apikey={V}'
prog 'https://h/x?key={V}'
prog 'https://h/x?access_token={V}'
prog 'https://h/x#access_token={V}'
prog 'https://h/x?client_secret={V}'
prog 'https://h/x?sig={V}%3D&se=1'
prog 'https://s3/x?X-Amz-Signature={V}'
prog 'https://s3/x?X-Amz-Security-Token={V}'
prog 'https://s/x?X-Goog-Signature={V}'
prog https://hooks.slack.com/services/T0/B0/{V}
prog https://discord.com/api/webhooks/1/{V}
prog 'Server=h;User Id=u;Password={V};'
prog 'Server=h;Pwd={V}'
prog 'AccountName=a;AccountKey={V}=='
prog 'SharedAccessKey={V}'
prog db.password={V}
prog db:password={V}
prog ++trainer.api_key={V}
prog --config '{{"api_key": "{V}", "lr": 0.1}}'
prog --config "{{'token': '{V}'}}"
prog --set secrets.db={V}
prog -Ddb.password={V}
prog -DdbPassword={V}
prog -Psecret={V}
prog -e DB_PASS={V}
prog --env=DB_PASS={V}
prog --build-arg TOKEN={V}
sh -c 'export API_KEY={V}; run'
sh -c 'DB_PASS={V} run'
sh -c 'curl -ubob:{V} http://h'
sh -c 'smbclient -U u%{V} //h/s'
sh -c 'run --smtp-pass {V}'
sh -c 'run --clientsecret {V}'
sh -c 'docker login -u me -p {V}'
sh -c 'redis-cli -a {V}'
env MYSECRET={V} run
""".strip().splitlines()

_T = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7d"
TOKENS = [
    f"ghp_{_T}", f"gho_{_T}", f"ghs_{_T}", f"github_pat_11ABCDE0Y0{_T}", f"glpat-{_T[:20]}", f"gldt-{_T[:20]}", f"glrt-{_T[:20]}",
    f"sk-{_T}", f"sk-proj-{_T}", f"sk-ant-api03-{_T}", f"sk-or-v1-{'0a1b2c3d' * 8}", f"xai-{_T}{_T}", f"gsk_{_T}{_T[:12]}",
    f"xoxb-123456789012-{_T}", f"xapp-1-A0123-456-{_T}", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", f"npm_{_T[:36]}", f"pypi-AgEIcHlwaS5vcmc{_T}", f"AIza{_T[:35]}",
    f"ya29.{_T}", f"GOCSPX-{_T[:28]}", f"SG.{_T[:22]}.{_T}", f"sk_live_{_T}", f"rk_test_{_T}", f"whsec_{_T}", f"dckr_pat_{_T[:27]}",
    f"dop_v1_{'0a1b2c3d' * 8}", f"shpat_{'0a1b2c3d' * 4}", f"nvapi-{_T}{_T}", f"r8_{_T[:37]}", "dapi" + "0a1b2c3d" * 4, "dapi" + "0a1b2c3d" * 4 + "-2",
    f"hvs.{_T}{_T}", f"hvb.{_T}{_T}", f"s.{_T[:24]}", f"wandb_v1_{_T}{_T}", f"pplx-{_T}{_T[:8]}", f"fw_{_T[:24]}", f"tgp_v1_{_T}", f"lsv2_pt_{'0a1b2c3d' * 4}_0123456789",
    f"pcsk_{_T}{_T}", f"figd_{_T}", f"lin_api_{_T}", f"secret_{_T}{_T[:3]}", f"ntn_{_T}{_T[:6]}", f"dp.pt.{_T}", f"PMAK-{'0a1b2c3d' * 3}-{'0a1b2c3d' * 4}ab", f"glsa_{_T[:32]}_0a1b2c3d",
    f"sntrys_{_T}{_T}", f"NRAK-{_T[:27].upper()}", f"ATATT3xFfGF0{_T}{_T}", f"tskey-auth-{_T[:12]}-{_T}", f"oy2{'abcdefghij0123456789' * 2}abc"[:46],
    f"AGE-SECRET-KEY-1{'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L' * 2}"[:74], f"123456789:AA{_T[:33]}",
]  # fmt: skip

COMMANDS = [
    *(f"prog {option}={V}" if number % 2 else f"prog {option} {V}" for number, option in enumerate(_OPTIONS)),
    *_LINES,
]
VARIABLES = dict.fromkeys(_VARIABLES, V)

ORDINARY = """
python train.py --passes 3 --pass 3 --token-count 5 --num-tokens 512 --num_tokens=9 --tokens 77 --max-tokens 512 --tokenizer bert --monkey 1 monkey=1
donkey=grey --keyboard us --keyframes 3 --hotkey ctrl --turkey yes --author me --authors 3 --compass n --bypass cache --passenger 3 --passive on
--passport-size 3 --sparse-key 5 --secretary jane --secretariat open --pins 4 --pinned yes --pin-memory true --pin_memory=True --pinhole small
--spin fast --opinion good --pattern abc --path /tmp/x --patience 5 --patch-size 16 --patches 4 --signal SIGTERM --signed yes --design modern
--sigma 0.5 --sigmoid on --hook forward --hooks 3 --webhooks-enabled false --session train --sessions 3 --connect localhost --connections 8
--key-dim 64 --num-keys 8 --sort-key name --keys a,b --keypoints 17 --codec h264 --code 5 --state open --user bob --username bob --user 1000:1000
--otp-slots 3 --optimizer adam s.py s.train fw_step fw_bw lin_api --secret-file /run/x --password-file /run/y --pw-mode fast --sas-version 2020
-u 1000:1000 -U postgres -U bob --proxy-user bob -b 32 -k 5 -a fast -P 4 -p 8080 -w 8 xai-grok-beta dapi daphne hvs s.exe wandb_v1 pplx-small
key=5 sort_key=name tokens=5 compass=n passes=3 bypass=1 KEYBOARD=us MONKEY=1 COMPASS=n PASSES=3 BYPASS=1 KEYMAP=de
rate%20 50%done u%n --loss-pct 5%1 2024-01-01T00:00:00 sk-learn task-1234567890 gl-nightly secret_santa ntn dp.pt PMAK
""".split()
